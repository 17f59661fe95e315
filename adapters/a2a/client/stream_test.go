package client_test

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/a2a/client"
	"github.com/dragoman-hub/dragoman/core"
)

func TestAStreamIsToldInOrderAndTheEndLast(t *testing.T) {
	f := remote(t, map[string]func(*exchange){"SendStreamingMessage": func(x *exchange) {
		x.raw(": ping\n\n")
		x.say(task("SUBMITTED"), status("WORKING"), chunk("HEL"), chunk("LO"), chunk(" THERE"), status("COMPLETED"))
	}})
	a := run(t, client.Options{URL: f.URL})
	c := newTurn(t, "hello there")
	a.does(c, "accepted\nsession_started C\ntext HELLO THERE\ndone")
	want := `SendStreamingMessage {"tenant":"t 1","message":{"messageId":"task-1","role":"ROLE_USER","parts":[{"text":"hello there"}]},"configuration":{}}`
	if got := f.called(); len(got) != 1 || got[0] != want {
		t.Errorf("the client sent:\n%s\nwant:\n%s", strings.Join(got, "\n"), want)
	}
	if c.delivered != 1 {
		t.Errorf("Delivered was called %d times, want once", c.delivered)
	}
	if len(a.profile.Capabilities) != 1 || a.profile.Capabilities[0] != "shout" || !a.profile.Features.Has(core.FeatureStreaming|core.FeatureCancellation) {
		t.Errorf("the profile is %+v, want the skill as a capability, streaming and cancellation", a.profile)
	}
}

func TestEveryKindOfContentIsTold(t *testing.T) {
	f := remote(t, map[string]func(*exchange){"SendStreamingMessage": func(x *exchange) {
		x.say(task("WORKING"),
			statusSaying("WORKING", "m1", "looking"),
			`{"artifactUpdate":{"taskId":"T","contextId":"C","artifact":{"artifactId":"thinking","parts":[{"text":"hm"}]}}}`,
			chunk("see "),
			`{"artifactUpdate":{"taskId":"T","contextId":"C","artifact":{"artifactId":"f","name":"pic.png","parts":[{"raw":"UE5H","mediaType":"image/png"}]}}}`,
			`{"artifactUpdate":{"taskId":"T","contextId":"C","artifact":{"artifactId":"answer","parts":[{"url":"https://example.com/a","filename":"a"}]},"append":true}}`,
			`{"artifactUpdate":{"taskId":"T","contextId":"C","artifact":{"artifactId":"d","parts":[{"data":{"n":1}},{"data":null}]}}}`,
			`{"statusUpdate":{"taskId":"T","contextId":"C","status":{"state":"TASK_STATE_COMPLETED","message":{"messageId":"m2","role":"ROLE_AGENT","parts":[{"text":"all done"}]}},"metadata":{"usage":{"input":3,"output":4}}}}`)
	}})
	a := run(t, client.Options{URL: f.URL})
	a.does(newTurn(t, "x"), `accepted
session_started C
thinking looking
thinking hm
text see
file pic.png image/png PNG
text [a](https://example.com/a)

usage {"input":3,"output":4}
thinking all done
done [{"n":1},null]`)
}

func TestAnAnswerMayBeAMessageOrStandInTheLastStatus(t *testing.T) {
	for name, items := range map[string][]string{
		"message":     {`{"message":{"messageId":"m","contextId":"C","role":"ROLE_AGENT","parts":[{"text":"HELLO"},{"data":7}]}}`},
		"last status": {task("WORKING"), `{"statusUpdate":{"taskId":"T","contextId":"C","status":{"state":"TASK_STATE_COMPLETED","message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"HELLO"},{"data":7}]}}}}`},
		"history":     {`{"task":{"id":"T","contextId":"C","status":{"state":"TASK_STATE_COMPLETED"},"history":[{"messageId":"task-1","role":"ROLE_USER","parts":[{"text":"x"}]},{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"HELLO"},{"data":7}]}]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			f := remote(t, map[string]func(*exchange){"SendStreamingMessage": func(x *exchange) { x.say(items...) }})
			c := newTurn(t, "x")
			if err := run(t, client.Options{URL: f.URL}).work(c); err != nil {
				t.Fatal(err)
			}
			if got := c.story(); c.said() != "HELLO" || !strings.HasSuffix(got, "done 7") {
				t.Errorf("the agent reported:\n%s\nwant the text HELLO and the data 7", got)
			}
		})
	}
}

func TestTheEndsOfATaskAreTold(t *testing.T) {
	for state, want := range map[string]string{
		"FAILED":        `failed internal: no such city`,
		"REJECTED":      `failed invalid: no such city`,
		"CANCELED":      `cancelled no such city`,
		"AUTH_REQUIRED": `failed unauthenticated: the remote agent wants an authorization that the hub cannot give (TASK_STATE_AUTH_REQUIRED): no such city`,
	} {
		f := remote(t, map[string]func(*exchange){
			"SendStreamingMessage": func(x *exchange) { x.say(task("WORKING"), chunk("a"), statusSaying(state, "m", "no such\ncity")) },
			"CancelTask":           func(x *exchange) { x.result(`{"id":"T","status":{"state":"TASK_STATE_CANCELED"}}`) },
		})
		c := newTurn(t, "x")
		if err := run(t, client.Options{URL: f.URL}).work(c); err != nil {
			t.Errorf("%s: got %v, want no error", state, err)
		}
		if got := strings.ReplaceAll(c.story(), "\ncity", " city"); !strings.HasSuffix(got, "\n"+want) {
			t.Errorf("%s: the agent reported:\n%s\nwant it to end with %s", state, got, want)
		}
		if called := strings.Join(f.called(), " "); state == "AUTH_REQUIRED" && !strings.Contains(called, "CancelTask") {
			t.Errorf("AUTH_REQUIRED: got the calls %s, want a CancelTask", called)
		}
	}
}

func TestAFaultOfAHubIsTakenAsItIs(t *testing.T) {
	f := remote(t, map[string]func(*exchange){"SendStreamingMessage": func(x *exchange) {
		x.say(task("WORKING"), `{"statusUpdate":{"taskId":"T","contextId":"C","status":{"state":"TASK_STATE_FAILED"},"metadata":{"fault":{"code":"budget","message":"no tokens left","retryable":true}}}}`)
	}})
	c := newTurn(t, "x")
	if err := run(t, client.Options{URL: f.URL}).work(c); err != nil {
		t.Fatal(err)
	}
	failed, _ := c.events[len(c.events)-1].Body.(core.Failed)
	if failed.Fault == nil || failed.Fault.Code != core.CodeBudget || failed.Fault.Message != "no tokens left" || !failed.Fault.Retryable {
		t.Errorf("the task ended with %+v, want the fault of the hub", failed.Fault)
	}
}

func TestWhatArtifactsReplaceAndRepeatIsToldOnce(t *testing.T) {
	put := func(text string) string {
		return `{"artifactUpdate":{"taskId":"T","contextId":"C","artifact":{"artifactId":"a","parts":[{"text":"` + text + `"}]}}}`
	}
	for name, tt := range map[string]struct {
		items []string
		want  string
	}{
		"grows":       {[]string{put("one"), put("one two"), put("one two three")}, "one two three"},
		"repeated":    {[]string{put("one"), put("one"), `{"task":{"id":"T","contextId":"C","status":{"state":"TASK_STATE_WORKING"},"artifacts":[{"artifactId":"a","parts":[{"text":"o"},{"text":"ne"}]}]}}`}, "one"},
		"replaced":    {[]string{put("plan A"), put("plan B")}, "plan A\n\nplan B"},
		"an old task": {[]string{put("one two"), `{"task":{"id":"T","contextId":"C","status":{"state":"TASK_STATE_WORKING"},"artifacts":[{"artifactId":"a","parts":[{"text":"one"}]}]}}`}, "one two"},
		"another":     {[]string{put("one"), chunk("two")}, "one\n\ntwo"},
	} {
		t.Run(name, func(t *testing.T) {
			f := remote(t, map[string]func(*exchange){"SendStreamingMessage": func(x *exchange) {
				x.say(task("WORKING"))
				x.say(tt.items...)
				x.say(status("COMPLETED"))
			}})
			c := newTurn(t, "x")
			if err := run(t, client.Options{URL: f.URL}).work(c); err != nil || c.said() != tt.want {
				t.Errorf("got %q and the error %v, want %q", c.said(), err, tt.want)
			}
		})
	}
}

func TestARequestBecomesPartsAndContinuesItsThread(t *testing.T) {
	n := 0
	f := remote(t, map[string]func(*exchange){"SendStreamingMessage": func(x *exchange) {
		n++
		x.say(task("WORKING"), chunk("ok"), status("COMPLETED"))
	}})
	a := run(t, client.Options{URL: f.URL})
	first := newTurn(t, "look")
	first.request.Data = []byte(`{"n":1}`)
	first.request.Context = []byte(`{"city":"Ulm"}`)
	first.request.Attachments = []core.File{{Name: "a.txt", MediaType: "text/plain", Data: []byte("abc")}}
	first.request.History = []core.Turn{{Role: core.RoleUser, Text: "who?"}, {Role: core.RoleAssistant, Agent: "kit", Text: "me"}}
	a.does(first, "accepted\nsession_started C\ntext ok\ndone")
	second := newTurn(t, "more")
	second.id = "task-2"
	second.request.History = first.request.History
	a.does(second, "accepted\ntext ok\ndone")
	calls := f.called()
	want := []string{
		`SendStreamingMessage {"tenant":"t 1","message":{"messageId":"task-1","role":"ROLE_USER","parts":[{"text":"Earlier in this conversation:\n\nuser: who?\n\nkit: me\n"},{"text":"look"},{"data":{"n":1}},{"raw":"YWJj","mediaType":"text/plain","filename":"a.txt"}],"metadata":{"city":"Ulm"}},"configuration":{}}`,
		`SendStreamingMessage {"tenant":"t 1","message":{"messageId":"task-2","contextId":"C","role":"ROLE_USER","parts":[{"text":"more"}],"referenceTaskIds":["T"]},"configuration":{}}`,
	}
	if strings.Join(calls, "\n") != strings.Join(want, "\n") {
		t.Errorf("the client sent:\n%s\nwant:\n%s", strings.Join(calls, "\n"), strings.Join(want, "\n"))
	}
}

func TestAMessageCarriesTheTraceOfItsTask(t *testing.T) {
	heard := make(chan core.Trace, 2)
	f := remote(t, map[string]func(*exchange){"SendStreamingMessage": func(x *exchange) {
		heard <- core.TraceOf(x.r.Header)
		x.say(task("WORKING"), status("COMPLETED"))
	}})
	for _, in := range []core.Trace{{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "a=b"}, {}} {
		c := newTurn(t, "x")
		c.trace = in
		run(t, client.Options{URL: f.URL}).does(c, "accepted\nsession_started C\ndone")
		if got := <-heard; got != in {
			t.Errorf("got the trace %+v, want %+v", got, in)
		}
	}
}

func TestACharacterInTwoPartsIsOne(t *testing.T) {
	f := remote(t, map[string]func(*exchange){"SendStreamingMessage": func(x *exchange) {
		half := func(text string) string { return strings.Replace(chunk("TEXT"), "TEXT", text, 1) }
		x.say(task("WORKING"), half(`a\ud83d`), half(`\ude00b`), half(`\ud83d`), status("COMPLETED"))
	}})
	run(t, client.Options{URL: f.URL}).does(newTurn(t, "x"), "accepted\nsession_started C\ntext a😀b�\ndone")
}
