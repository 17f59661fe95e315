package client_test

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/a2a/client"
	"github.com/dragoman-hub/dragoman/core"
)

// snapshot is a task with the text of its answer, in one part.
func snapshot(state, text string) string {
	return `{"id":"T","contextId":"C","status":{"state":"TASK_STATE_` + state + `"},"artifacts":[{"artifactId":"answer","parts":[{"text":"` + text + `"}]}]}`
}

func TestAStreamThatIsCutIsContinuedWithWhatIsNew(t *testing.T) {
	f := remote(t, map[string]func(*exchange){
		"SendStreamingMessage": func(x *exchange) { x.say(task("WORKING"), chunk("one "), chunk("two ")); x.cut() },
		"SubscribeToTask": func(x *exchange) {
			x.say(`{"task":`+snapshot("WORKING", "one two three ")+`}`, chunk("four"), status("COMPLETED"))
		},
	})
	a := run(t, client.Options{URL: f.URL})
	a.does(newTurn(t, "x"), "accepted\nsession_started C\ntext one two three four\ndone")
	if got := f.called()[1]; got != `SubscribeToTask {"tenant":"t 1","id":"T"}` {
		t.Errorf("after the cut the client sent %s", got)
	}
	if n := a.counted.of("a2a.agent.cut"); n != 1 {
		t.Errorf("got %d counted cuts, want 1", n)
	}
}

func TestAStreamThatEndsWithoutTheTaskIsNotDone(t *testing.T) {
	tries := 0
	f := remote(t, map[string]func(*exchange){
		"SendStreamingMessage": func(x *exchange) { x.say(task("WORKING"), chunk("one ")) }, // and a clean end
		"SubscribeToTask":      func(x *exchange) { tries++; x.say(`{"task":` + snapshot("WORKING", "one ") + `}`) },
	})
	a := run(t, client.Options{URL: f.URL})
	c := newTurn(t, "x")
	a.fails(c, core.CodeUnreachable, "not continued in 5 attempts")
	if tries != 5 || c.said() != "one " {
		t.Errorf("got %d attempts and the text %q, want 5 and what was said", tries, c.said())
	}
}

func TestATaskThatEndedDuringACutIsToldFromItsState(t *testing.T) {
	f := remote(t, map[string]func(*exchange){
		"SendStreamingMessage": func(x *exchange) { x.say(task("WORKING"), chunk("one ")); x.cut() },
		"SubscribeToTask":      func(x *exchange) { x.fails(-32004, "the task is in a terminal state") },
		"GetTask":              func(x *exchange) { x.result(snapshot("COMPLETED", "one two")) },
	})
	run(t, client.Options{URL: f.URL}).does(newTurn(t, "x"), "accepted\nsession_started C\ntext one two\ndone")
}

func TestATaskThatTheRemoteForgotDuringACutFails(t *testing.T) {
	f := remote(t, map[string]func(*exchange){
		"SendStreamingMessage": func(x *exchange) { x.say(task("WORKING"), chunk("one ")); x.cut() },
		"SubscribeToTask":      func(x *exchange) { x.fails(-32001, "no such task") },
	})
	run(t, client.Options{URL: f.URL}).fails(newTurn(t, "x"), core.CodeUnreachable, "no such task")
}

func TestACutBeforeTheFirstWordFails(t *testing.T) {
	f := remote(t, map[string]func(*exchange){
		"SendStreamingMessage": func(x *exchange) { x.raw(": hello\n\n"); x.cut() },
	})
	run(t, client.Options{URL: f.URL}).fails(newTurn(t, "x"), core.CodeUnreachable, "before it named its task")
}

func TestAHubIsAskedForWhatFollowsTheCursor(t *testing.T) {
	at := func(cursor, text string) string {
		return `{"artifactUpdate":{"taskId":"T","contextId":"C","artifact":{"artifactId":"answer","parts":[{"text":"` + text + `"}]},"append":true,"metadata":{"urn:dragoman:a2a:cursor:1":"` + cursor + `"}}}`
	}
	f := remote(t, map[string]func(*exchange){
		"SendStreamingMessage": func(x *exchange) {
			if got := x.r.Header.Get("A2A-Extensions"); got != "urn:dragoman:a2a:cursor:1" {
				x.Errorf("A2A-Extensions: got %q, want the cursor extension", got)
			}
			x.say(task("WORKING"), at("1.2", "one "), at("1.3", "two "))
			x.cut()
		},
		"SubscribeToTask": func(x *exchange) { x.say(at("1.4", "two "), at("1.5", "three"), status("COMPLETED")) },
	})
	f.setCard(strings.Replace(streamingCard, `"streaming":true`, `"streaming":true,"extensions":[{"uri":"urn:dragoman:a2a:cursor:1"}]`, 1))
	c := newTurn(t, "x")
	run(t, client.Options{URL: f.URL}).does(c, "accepted\nsession_started C\ntext one two two three\ndone")
	if got, want := f.called()[1], `SubscribeToTask {"tenant":"t 1","id":"T","metadata":{"urn:dragoman:a2a:cursor:1":"1.3"}}`; got != want {
		t.Errorf("after the cut the client sent %s, want %s", got, want)
	}
	for _, e := range c.events {
		if e.Foreign != nil {
			t.Errorf("%s has the foreign %s, want none for a cursor", e.Body.Kind(), e.Foreign.JSON)
		}
	}
}

func TestARemoteThatDoesNotStreamIsPolled(t *testing.T) {
	polls := 0
	f := remote(t, map[string]func(*exchange){
		"SendMessage": func(x *exchange) { x.result(`{"task":` + snapshot("WORKING", "one ") + `}`) },
		"GetTask": func(x *exchange) {
			polls++
			switch polls {
			case 1:
				x.result(snapshot("WORKING", "one two "))
			case 2:
				x.w.WriteHeader(502) // a gateway in between hiccups
			default:
				x.result(snapshot("COMPLETED", "one two three"))
			}
		},
	})
	f.setCard(strings.Replace(streamingCard, `"streaming":true`, "", 1))
	run(t, client.Options{URL: f.URL}).does(newTurn(t, "x"), "accepted\nsession_started C\ntext one two three\ndone")
	want := `SendMessage {"tenant":"t 1","message":{"messageId":"task-1","role":"ROLE_USER","parts":[{"text":"x"}]},"configuration":{"returnImmediately":true}}`
	if got := f.called(); got[0] != want || got[1] != `GetTask {"tenant":"t 1","id":"T","historyLength":1}` {
		t.Errorf("the client sent:\n%s", strings.Join(got[:2], "\n"))
	}
}

func TestARemoteThatAnswersAtOnceNeedsNoStream(t *testing.T) {
	f := remote(t, map[string]func(*exchange){
		"SendStreamingMessage": func(x *exchange) { x.result(`{"task":` + snapshot("COMPLETED", "all") + `}`) },
	})
	run(t, client.Options{URL: f.URL}).does(newTurn(t, "x"), "accepted\nsession_started C\ntext all\ndone")
}
