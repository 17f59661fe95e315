package hub_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// assigned returns the next task of the agent.
func (g *testHub) assigned(s *hub.Session) *task.Task {
	g.t.Helper()
	for {
		b, ok := g.batch(s)
		if !ok {
			g.t.Fatal("got no task, want one")
		}
		for _, e := range b.Events {
			if e.Body.Kind() == core.KindAssigned {
				return b.Task
			}
		}
	}
}

// forgotten returns the id of a task that a delegated to b, which ended with these events
// and is now only in the journal.
func (g *testHub) forgotten(a, b *hub.Session, bodies ...core.Body) string {
	g.t.Helper()
	task := call[asked](g, a, "agent_delegate", `{"to":"b","content":"do it"}`)
	for i := range 3 { // one remains in memory
		if i > 0 {
			bodies = []core.Body{core.Done{}}
			call[asked](g, a, "agent_delegate", `{"to":"b","content":"do it"}`)
		}
		g.report(b, g.assigned(b), bodies...)
		g.sleep(time.Second)
	}
	return `{"task_id":"` + string(task.TaskID) + `"}`
}

func TestTheResultToolFindsTasksInTheJournal(t *testing.T) {
	withHub(t, hub.Limits{FinishedTasks: 1}, func(g *testHub) {
		a, b := g.agent("a", able), g.agent("b", able)
		done := g.forgotten(a, b, core.Text{Text: "did it"}, core.Done{Data: json.RawMessage(`[1]`)})
		if got := call[asked](g, a, "agent_result", done); got.State != "done" || got.Text != "did it" || string(got.Data) != `[1]` {
			t.Errorf("got %+v, want done, with text and data", got)
		}
		failed := g.forgotten(a, b, core.Text{Text: "half"}, core.Failed{Fault: core.NewFault(core.CodeBudget, "spent")})
		if got := call[asked](g, a, "agent_result", failed); got.State != "failed" || got.Text != "half" || got.Error == nil || got.Error.Code != core.CodeBudget {
			t.Errorf("got %+v, want failed as budget, with the text before it", got)
		}
		c := g.agent("c", able)
		c.CallTool("c1", "agent_result", json.RawMessage(done))
		if o := g.tool(c); o.Fault == nil || o.Fault.Code != core.CodeUnknownTask {
			t.Errorf("another principal: got %+v, want unknown_task", o)
		}
	})
}

// hanging is a journal that records and never answers reads.
type hanging struct{ journal.Journal }

func (hanging) Read(ctx context.Context, _ core.TaskID, _ uint64, _ int) ([]core.Event, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func TestAHangingJournalDelaysNoToolCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &testHub{t, coretest.NewHub(t, hub.Options{Journal: hanging{journal.NewMemory(journal.Retention{})}})}
		a := g.agent("a", able)
		began := time.Now()
		a.CallTool("c1", "agent_result", []byte(`{"task_id":"long ago"}`))
		a.CallTool("c2", "agents_list", nil)
		if took := time.Since(began); took != 0 {
			t.Errorf("the call took %v, want no time", took)
		}
		if o := g.tool(a); o.Call != "c2" || time.Since(began) != 0 {
			t.Errorf("got the output of call %s after %v, want that of c2 at once", o.Call, time.Since(began))
		}
		g.sleep(5 * time.Second)
		if o := g.tool(a); o.Call != "c1" || o.Fault == nil || o.Fault.Code != core.CodeTimeout {
			t.Errorf("got %+v, want a timeout of call c1", o)
		}
		for range 66 {
			a.CallTool("c3", "agent_result", []byte(`{"task_id":"long ago"}`))
		}
		if o := g.tool(a); o.Fault == nil || o.Fault.Code != core.CodeOverloaded {
			t.Errorf("got %+v, want one call too many refused", o)
		}
	})
}

func TestLookupsOfClosedSessionsAreSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &testHub{t, coretest.NewHub(t, hub.Options{Journal: hanging{journal.NewMemory(journal.Retention{})}})}
		a, b := g.agent("a", able), g.agent("b", able)
		for range 10 {
			a.CallTool("c1", "agent_result", []byte(`{"task_id":"long ago"}`))
		}
		synctest.Wait() // the first is being read
		a.Close(nil)
		b.CallTool("c1", "agent_result", []byte(`{"task_id":"long ago"}`))
		g.sleep(10 * time.Second)
		if o := g.tool(b); o.Fault == nil || o.Fault.Code != core.CodeTimeout {
			t.Errorf("got %+v, want the lookup of the open session", o)
		}
	})
}

func TestAToolCallDuringAStopIsRaceFree(t *testing.T) {
	for range 50 {
		h := coretest.NewHub(t, hub.Options{})
		s := h.Connect(hub.Identity{Principal: core.Principal{ID: "r"}})
		stopped := make(chan error)
		go func() { stopped <- h.Close(context.Background(), "over") }()
		for range 10 {
			s.CallTool("c1", "agent_result", []byte(`{"task_id":"long ago"}`))
		}
		if err := <-stopped; err != nil {
			t.Fatal(err)
		}
		s.CallTool("c1", "agent_result", []byte(`{"task_id":"long ago"}`))
		s.Close(nil)
	}
}

func TestTheAskToolReturnsTheTextBeforeAFailure(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, b := g.agent("a", able), g.agent("b", able)
		ask := func(bodies ...core.Body) *tool.Result {
			t.Helper()
			a.CallTool("c1", "agent_ask", []byte(`{"to":"b","content":"hello"}`))
			g.report(b, g.assigned(b), bodies...)
			return g.tool(a)
		}
		spent := core.Failed{Fault: core.NewFault(core.CodeBudget, "spent")}
		o := ask(core.Text{Text: "half"}, spent)
		var got asked
		if err := json.Unmarshal(o.Output, &got); err != nil || o.Fault == nil || o.Fault.Code != core.CodeBudget {
			t.Fatalf("got %+v and %v, want a budget fault with JSON", o, err)
		}
		if got.State != "failed" || got.Text != "half" || got.TaskID == "" || got.Error == nil || got.Error.Message != "spent" {
			t.Errorf("got %+v, want the output of agent_result", got)
		}
		if o := ask(spent); o.Fault == nil || o.Output != nil {
			t.Errorf("without text: got %+v, want only a fault", o)
		}
	})
}
