package pi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/core"
)

func TestASessionThatJoinsAThreadStartsWithItsTurns(t *testing.T) {
	h, s := newServer(t, pi.Options{Commands: command.Options{QueuePrompts: true}, SessionDir: t.TempDir()})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a", MaxConcurrent: 4}, w.work)
	who := newAsker(t, h, "rest")
	one := who.ask("../kitchen", "a", "one")
	<-w.tasks
	a.report(one, core.Text{Text: " 1"}, core.Done{})
	two := who.ask("../kitchen", "a", "two")
	<-w.tasks
	c := dial(t, s, pi.ConnOptions{})
	c.ok(`{"type":"create_session","sessionId":"s","thread":"../kitchen"}`)
	if got := roles(t, c, "s"); !strings.HasPrefix(got, "user:one assistant:begun 1") {
		t.Errorf("messages: got %s, want the earlier turns", got)
	}
	if f := c.ok(`{"type":"get_state","sessionId":"s"}`); !has(f, `"thread":"../kitchen"`, `"id":"a"`, `"isStreaming":true`) {
		t.Errorf("state: got %s, want the thread, its agent and a run", f.Data)
	}
	c.ok(`{"type":"switch_session","sessionId":"s"}`)
	c.send(`{"id":"p","type":"prompt","sessionId":"s","message":"three"}`)
	c.until("command_accepted", `"p"`)
	a.report(two, core.Text{Text: " 2"}, core.Done{})
	three := <-w.tasks
	if got := three.Request(); got.Thread != "../kitchen" || got.To != core.ToAgent("a") || len(got.History) != 4 {
		t.Errorf("the prompt: got thread %s, to %s, history %v, want the whole thread", got.Thread, got.To, got.History)
	}
	a.report(three, core.Text{Text: " 3"}, core.Done{})
	c.until(`"response"`, `"p"`)
	if got := roles(t, c, "s"); got != "user:one assistant:begun 1 user:two assistant:begun 2 user:three assistant:begun 3" {
		t.Errorf("messages: got %s", got)
	}
	flush(s)
	path := textOf(c, `{"type":"get_state","sessionId":"s"}`, "sessionFile")
	if strings.Contains(path, "kitchen") {
		t.Errorf("file: got %s, want the name of the thread kept out of it", path)
	}
	c.ok(`{"type":"load_session","sessionId":"copy","sessionPath":"` + path + `"}`)
	if got, want := roles(t, c, "copy"), roles(t, c, "s"); got != want {
		t.Errorf("messages of the file: got %s, want %s", got, want)
	}
}

func TestJoiningAThreadNeedsTheRightToReadIt(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	joinAgent(t, h, core.Card{ID: "a"}, answerWith(core.Done{Text: "x"}))
	newAsker(t, h, "bob").ask("bobs", "a", "mine")
	newAsker(t, h, "ann").ask("anns", "a", "mine")
	ann := dial(t, s, pi.ConnOptions{Principal: core.Principal{ID: "ann", Authenticated: true}})
	boss := dial(t, s, pi.ConnOptions{Principal: core.Principal{ID: "boss", Authenticated: true, Operator: true}})
	create := func(id, thread string) string {
		return fmt.Sprintf(`{"type":"create_session","sessionId":%q,"thread":%q}`, id, thread)
	}
	ann.fails(create("s", "bobs"), "Thread bobs belongs to somebody else")
	ann.fails(`{"type":"get_state","sessionId":"s"}`, "Session s not found")
	ann.ok(create("s", "anns"))
	ann.fails(create("t", "anns"), "Thread anns is that of session s already: switch to that")
	boss.ok(create("s", "anns"))
	boss.ok(create("t", "bobs"))
	ann.fails(create("t", " "), "Validation failed: thread: "+command.NotBlank)
	ann.fails(create("t", strings.Repeat("x", core.MaxIDBytes+1)), "Validation failed: thread: Too long (max 512 bytes)")
	ann.fails(`{"type":"create_session","thread":7}`, "Validation failed: thread: "+command.NotBlank)

	// For clients that may not read the thread it is a new one without turns.
	ann.ok(create("n", "news"))
	ann.ok(`{"type":"switch_session","sessionId":"n"}`)
	newAsker(t, h, "bob").ask("news", "a", "for bob alone")
	newAsker(t, h, "ann").ask("news", "a", "for ann")
	ann.until(`"agent_end"`, `"text":"for ann"`)
	if ann.count("for bob alone") > 0 {
		t.Error("got bob's prompt shown to ann, want it hidden")
	}
}

func TestAnOperatorThatJoinsAThreadSeesItsRuns(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a"}, w.work)
	ann := dial(t, s, pi.ConnOptions{Principal: core.Principal{ID: "ann", Authenticated: true}})
	boss := dial(t, s, pi.ConnOptions{Principal: core.Principal{ID: "boss", Authenticated: true, Operator: true}})
	ann.open("s", "a")
	boss.ok(`{"type":"create_session","sessionId":"look","thread":"` + string(threadOf(ann, "s")) + `"}`)
	boss.ok(`{"type":"switch_session","sessionId":"look"}`)
	for i, asks := range []*testClient{ann, boss} {
		other := []*testClient{boss, ann}[i]
		id := fmt.Sprint("p", i)
		asks.send(fmt.Sprintf(`{"id":%q,"type":"prompt","sessionId":%q,"message":%q}`, id, []string{"s", "look"}[i], id))
		task := <-w.tasks
		a.report(task, core.Text{Text: "!"}, core.Done{})
		asks.until(`"response"`, `"id":"`+id+`"`, `"success":true`)
		if asks == ann {
			other.until("agent_end", `"text":"p0"`)
		}
	}
	if got := roles(t, boss, "look"); got != "user:p0 assistant:begun! user:p1 assistant:begun!" {
		t.Errorf("messages of the operator: got %s", got)
	}
	if got := roles(t, ann, "s"); got != "user:p0 assistant:begun!" { // she may not read the operator's prompt
		t.Errorf("messages of ann: got %s", got)
	}
}

// All connections of a principal share its sessions, but each task has the rights of the
// client that sent its prompt.
func TestAPromptHasTheRightsOfItsClient(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a"}, w.work)
	ann := dial(t, s, pi.ConnOptions{Principal: core.Principal{ID: "ann", Authenticated: true}})
	boss := dial(t, s, pi.ConnOptions{Principal: core.Principal{ID: "boss", Authenticated: true, Operator: true}})
	for _, c := range []*testClient{ann, boss} {
		c.ok(`{"type":"create_session","sessionId":"s","agent":"a","thread":"news"}`)
	}
	newAsker(t, h, "bob").ask("news", "a", "for bob alone")
	a.report(<-w.tasks, core.Done{})
	for i, c := range []struct {
		*testClient
		from  core.Principal
		turns int
	}{
		{ann, core.Principal{ID: "ann", Dialect: pi.Name, Authenticated: true}, 0},
		{boss, core.Principal{ID: "boss", Dialect: pi.Name, Authenticated: true, Operator: true}, 4},
	} {
		id := fmt.Sprint("p", i)
		c.send(fmt.Sprintf(`{"id":%q,"type":"prompt","sessionId":"s","message":"and?"}`, id))
		task := <-w.tasks
		if got := task.Request().History; len(got) != c.turns {
			t.Errorf("%s: got a history of %v turns, want %d", c.from.ID, got, c.turns)
		}
		if got := task.From(); got != c.from {
			t.Errorf("got requester %+v, want %+v", got, c.from)
		}
		a.report(task, core.Done{})
		c.until(`"response"`, `"id":"`+id+`"`)
	}
}
