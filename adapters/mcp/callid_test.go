package mcp_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/mcp"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/tool"
)

func TestACallBelongsToTheTaskWhoseCallOrThreadItNames(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]struct{ meta, thread string }{
		"the id of the call": {`"_meta":{"dragoman/call":"call of bob"},`, ""},
		"the thread":         {"", "his%2Fown"},
	} {
		t.Run(name, func(t *testing.T) { testCallOfBob(t, how.meta, how.thread) })
	}
}

// testCallOfBob has an agent with a task of ada and one of bob call a tool of a pack for bob.
func testCallOfBob(t *testing.T, meta, in string) {
	t.Helper()
	g := start(t, mcp.Options{})
	connect := func(id string) *hub.Session {
		s := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: id}, Dialect: "test"})
		t.Cleanup(func() { s.Close(nil) })
		return s
	}
	ann, pack := g.agent("ann"), connect("weather")
	if err := pack.Provide("weather", []tool.Definition{{Name: "forecast", Timeout: time.Minute, InputSchema: json.RawMessage(`{"type":"object"}`)}}); err != nil {
		t.Fatal(err)
	}
	token, revoke := g.server.Issue(ann.Session)
	defer revoke()

	here, there := connect("ada"), connect("bob")
	var ids []core.TaskID
	for i, asker := range []*hub.Session{here, there} {
		thread, who := core.ThreadID([]string{"hers", "his/own"}[i]), asker.Identity().Principal
		asker.WatchQuestions(question.View{Thread: thread, For: who})
		to, _ := core.ParseAddress("ann")
		if _, err := asker.Open(core.Request{Intent: core.IntentAsk, To: to, Thread: thread, Content: "?"}, hub.OpenOptions{}); err != nil {
			t.Fatal(err)
		}
		task := ann.next(core.KindAssigned)
		ann.report(task, core.ToolCall{ID: "call of " + who.ID, Name: "forecast", Input: "{}"})
		ids = append(ids, task.ID())
	}

	body := strings.Replace(toolCall("1", "forecast", `{}`), `"params":{`, `"params":{`+meta, 1)
	done := g.later(t.Context(), "/"+token, body, mcp.ThreadHeader+": "+in)
	b, err := pack.Next(t.Context())
	if err != nil || b.Execute == nil {
		t.Fatalf("got %+v and %v, want an execution", b, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	asked := make(chan error, 1)
	go func() {
		_, err := pack.AskCaller(ctx, b.Execute.ID, question.Question{Text: "Where?"})
		asked <- err
	}()
	for {
		got, err := there.Next(ctx)
		if err != nil {
			t.Fatalf("got %v, want a question", err)
		}
		if q := got.Question; q != nil {
			if len(q.Question.Tasks) != 1 || q.Question.Tasks[0] != ids[1] {
				t.Errorf("got a question of %v, want one of %s alone", q.Question.Tasks, ids[1])
			}
			break
		}
	}
	cancel()
	<-asked

	if err := there.Cancel(ids[1], "enough"); err != nil {
		t.Fatal(err)
	}
	(<-done).outcome().contains(t, true, "was cancelled")
	if withdrawn, err := pack.Next(t.Context()); err != nil || withdrawn.Withdrawn != b.Execute.ID {
		t.Errorf("got %+v and %v, want the execution withdrawn", withdrawn, err)
	}
}

func TestAnIDOfACallThatIsNoShortTextIsRefused(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	for _, id := range []string{`1`, `null`, `"` + strings.Repeat("x", 513) + `"`} {
		g.post("", strings.Replace(toolCall("1", "agents_list", `{}`), `"params":{`, `"params":{"_meta":{"dragoman/call":`+id+`},`, 1)).fails(400, -32602, "dragoman/call")
	}
}
