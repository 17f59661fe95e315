package hub_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/task"
)

// Each test here covers a former defect of the hub.

func TestAnEndedConnectionCannotUpdateItsSuccessor(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		old := g.agent("a", able)
		old.Close(nil)
		g.agent("a", able, func(c *core.Card) { c.Name = "now" })
		old.SetLoad(core.LoadDraining)
		g.wantLoad("a", 0, 0, core.LoadIdle)
		if err := old.Update(core.Card{ID: "a", Name: "old"}); err == nil {
			t.Error("updating: got no error, want one")
		}
		if a, _ := g.hub.Agent(core.Principal{Operator: true}, "a"); a.Name != "now" {
			t.Errorf("got the card of %q, want now", a.Name)
		}
		seen, _ := g.hub.Agent(core.Principal{Operator: true}, "a")
		g.sleep(time.Second)
		old.Seen()
		if a, _ := g.hub.Agent(core.Principal{Operator: true}, "a"); a.Load.LastSeen != seen.Load.LastSeen {
			t.Errorf("got last seen %s, want %s", a.Load.LastSeen, seen.Load.LastSeen)
		}
	})
}

func TestATaskOfALeavingAgentFreesNoSlotOfItsSuccessor(t *testing.T) {
	h := coretest.NewHub(t, hub.Options{Limits: hub.Limits{FinishedTasks: 10}})
	asker := h.Connect(hub.Identity{Principal: core.Principal{ID: "r"}})
	defer asker.Close(nil)
	agent := h.Connect(hub.Identity{Principal: core.Principal{ID: "a"}})
	if err := agent.Join(core.Card{ID: "a"}, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	for round := range 300 {
		task, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{Unwatched: true})
		if err != nil {
			t.Fatal(err)
		}
		old, next := agent, h.Connect(hub.Identity{Principal: core.Principal{ID: "a"}})
		var group sync.WaitGroup
		group.Go(func() { old.Close(nil) })
		group.Go(func() { _ = old.Report(task.ID(), core.Done{}, nil) })
		group.Go(func() {
			for next.Join(core.Card{ID: "a"}, hub.JoinOptions{}) != nil {
			}
		})
		group.Wait()
		if a, _ := h.Agent(core.Principal{Operator: true}, "a"); a.Load.Active != 0 {
			t.Fatalf("round %d: got %d active tasks of an agent that had none, want 0", round+1, a.Load.Active)
		}
		agent = next
	}
	agent.Close(nil)
}

func TestAReceiptKeepsItsStageAcrossRetries(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, b, asker := g.agent("a", able), g.agent("b", able), g.connect("r")
		task := g.ask(asker, "*")
		a.Delivered(task.ID())
		g.report(a, task, core.Accepted{}, notNow)
		if r := task.Receipt(); r.Stage != core.StageAccepted || r.Agent != "" {
			t.Errorf("assigned to b: got %s by %q, want accepted, since b reported nothing", r.Stage, r.Agent)
		}
		b.Delivered(task.ID())
		if r := task.Receipt(); r.Stage != core.StageDelivered || r.Agent != "b" {
			t.Errorf("accepted by b's transport: got %s by %q, want delivered by b", r.Stage, r.Agent)
		}
		g.report(b, task, core.Accepted{}, core.Done{})
	})
}

func TestARetryWithAnAgentWithoutAMemoryHasTheHistory(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		x := func(c *core.Card) { c.Capabilities = []string{"x"} }
		a, asker := g.agent("a", able|core.FeatureSessions, x), g.connect("r")
		g.talk(asker, a, "a", "t", "one?", "1")
		task := g.open(asker, core.Request{To: core.ToCapability("x"), Thread: "t"})
		b := g.agent("b", able, x)
		g.report(a, task, notNow)
		if got, want := turns(task.Request().History), "user: one? | assistant: 1"; got != want {
			t.Errorf("assigned to b: got the history %q, want %q", got, want)
		}
		g.report(b, task, core.Done{})
	})
}

func TestTheHistoryOfTheRequesterComesBeforeThatOfTheThread(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, asker := g.agent("a", able), g.connect("r")
		g.talk(asker, a, "a", "t", "one?", "1")
		task := g.open(asker, core.Request{To: core.ToAgent("a"), Thread: "t", History: []core.Turn{{Role: core.RoleUser, Text: "long ago"}}})
		if got, want := turns(task.Request().History), "user: long ago | user: one? | assistant: 1"; got != want {
			t.Errorf("got the history %q, want %q", got, want)
		}
		g.report(a, task, core.Done{})
	})
}

// gone is a journal without the first events of every task.
type gone struct {
	*journal.Memory
	lost uint64
}

func (j gone) Read(ctx context.Context, id core.TaskID, after uint64, limit int) ([]core.Event, error) {
	events, err := j.Memory.Read(ctx, id, max(after, j.lost), limit)
	if err == nil && after < j.lost {
		err = &journal.GapError{Task: id, From: after + 1, To: j.lost}
	}
	return events, err
}

// forgotten opens and ends a task and makes the store drop it.
func forgotten(t *testing.T, lost uint64, test func(g *testHub, asker *hub.Session, id core.TaskID)) {
	synctest.Test(t, func(t *testing.T) {
		kept := &gone{Memory: journal.NewMemory(journal.Retention{})}
		g := &testHub{t, coretest.NewHub(t, hub.Options{Journal: kept, Limits: hub.Limits{FinishedTasks: 1}})}
		a, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		g.report(a, task, core.Text{Text: "x"}, core.Done{})
		for range 2 {
			g.sleep(time.Second)
			g.report(a, g.ask(asker, "a"), core.Done{})
		}
		g.sleep(time.Second)
		g.events(asker)
		kept.lost = lost
		test(g, asker, task.ID())
		kept.lost = 0
	})
}

func TestARequesterGetsAGapOrAnErrorForADroppedTask(t *testing.T) {
	forgotten(t, 1, func(g *testHub, asker *hub.Session, id core.TaskID) {
		task, err := g.hub.Task(g.t.Context(), asker.Identity().Principal, id)
		if err != nil {
			if f := core.AsFault(err); f.Code != core.CodeUnknownTask {
				g.t.Errorf("got %v, want the task with a gap, or an error that it is no longer kept", f)
			}
			return
		}
		if err := asker.Watch(task, core.Cursor{}, nil); err != nil {
			g.t.Fatal(err)
		}
		if b, _ := g.batch(asker); b.Gap == nil {
			g.t.Errorf("got %+v, want a gap first", b)
		}
	})
}

func TestATaskWithoutRecordsIsUnknown(t *testing.T) {
	forgotten(t, 100, func(g *testHub, asker *hub.Session, id core.TaskID) {
		defer func() {
			if p := recover(); p != nil {
				g.t.Errorf("got the panic %v, want an unknown_task fault", p)
			}
		}()
		_, err := g.hub.Task(g.t.Context(), asker.Identity().Principal, id)
		if !errors.Is(err, &core.Fault{Code: core.CodeUnknownTask}) {
			g.t.Errorf("got %v, want an unknown_task fault", err)
		}
	})
}

func TestAHubClosesWithoutAReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := coretest.NewHub(t, hub.Options{})
		s := h.Connect(hub.Identity{Principal: core.Principal{ID: "a"}})
		if err := s.Join(core.Card{ID: "a"}, hub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
		asker := h.Connect(hub.Identity{Principal: core.Principal{ID: "r"}})
		if err := h.Close(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		if _, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{}); !errors.Is(err, &core.Fault{Code: core.CodeUnreachable}) {
			t.Errorf("a request to a closed hub: got %v, want unreachable", err)
		}
		defer func() {
			if p := recover(); p != nil {
				t.Errorf("a second close: got the panic %v, want nothing", p)
			}
		}()
		if err := h.Close(t.Context(), ""); err != nil {
			t.Errorf("a second close: got %v, want no error", err)
		}
	})
}

func TestAConnectionToAClosedHubEndsAtOnce(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		if err := g.hub.Close(g.t.Context(), "maintenance"); err != nil {
			t.Fatal(err)
		}
		late := g.connect("r")
		if b, _ := g.batch(late); b.Draining != "maintenance" {
			t.Errorf("got %+v, want the maintenance", b)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		if _, err := late.Next(ctx); !errors.Is(err, &core.Fault{Code: core.CodeUnreachable}) {
			t.Errorf("then: got %v, want an unreachable fault", err)
		}
	})
}

func TestARequesterCannotClaimACause(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, _, asker := g.agent("a", able), g.agent("b", able), g.connect("r")
		outer := g.ask(asker, "a")
		liar, err := asker.Open(core.Request{To: core.ToAgent("b"), Content: "go", Cause: outer.ID()}, hub.OpenOptions{})
		if err == nil && liar.Request().Cause != "" {
			t.Errorf("an agent without tasks: got the cause %q, want none or a refusal", liar.Request().Cause)
		}
		inner := g.ask(a, "b")
		if got := inner.Events()[0].Body.(core.Opened).Request.Cause; got != outer.ID() {
			t.Errorf("an agent with one task: got the cause %q, want %q", got, outer.ID())
		}
	})
}

func TestWatchingAllTwiceReadsOnce(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker, viewer := g.agent("a", able, two), g.operator("r"), g.operator("r")
		task := g.ask(asker, "a")
		g.watchAll(viewer)
		g.watchAll(viewer)
		g.watchAll(asker)
		g.report(agent, task, core.Text{Text: "once"}, core.Done{})
		g.wantKinds("watching all twice", g.events(viewer), "text", "done")
		g.wantKinds("a requester that watches all read", g.events(asker), "opened", "assigned", "text", "done")
	})
}

func TestAnEventWithoutAJSONFormStopsTheJournal(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able|core.FeatureNotices), g.connect("r")
		broken := json.RawMessage(`{"n":`)
		foreign := &core.Foreign{Dialect: "test", JSON: broken}
		var tasks []*task.Task
		done := func() *task.Task { return tasks[len(tasks)-1] }
		for name, act := range map[string]func() error{
			"data of an answer": func() error {
				tasks = append(tasks, g.ask(asker, "a"))
				return agent.Report(done().ID(), core.Done{Data: broken}, nil)
			},
			"foreign fields of an event": func() error {
				tasks = append(tasks, g.ask(asker, "a"))
				return agent.Report(done().ID(), core.Text{Text: "x"}, foreign)
			},
			"data of a notice": func() error {
				task, err := asker.Open(core.Request{Intent: core.IntentNotify, To: core.ToAgent("a"), Notice: &core.Notice{Topic: "t", Data: broken}}, hub.OpenOptions{})
				if task != nil {
					tasks = append(tasks, task)
				}
				return err
			},
			"foreign fields of a request": func() error {
				task, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "go", Foreign: foreign}, hub.OpenOptions{})
				if task != nil {
					tasks = append(tasks, task)
				}
				return err
			},
			"a deadline of no calendar": func() error {
				task, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "go", Deadline: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}, hub.OpenOptions{})
				if task != nil {
					tasks = append(tasks, task)
				}
				return err
			},
		} {
			if err := act(); err != nil {
				g.wantFault(name, err, core.CodeInvalid)
			}
			for _, task := range tasks {
				for _, e := range task.Events() {
					if _, err := json.Marshal(e); err != nil {
						t.Errorf("%s: got event %d, %s, appended to the log: %v", name, e.Seq, e.Body.Kind(), err)
					}
				}
				_ = asker.Cancel(task.ID(), "")
				_ = agent.Report(task.ID(), core.Cancelled{}, nil)
			}
			tasks = nil
		}
	})
}

func TestACancelBeforeAFarDeadlineDoesNotDisconnectTheAgent(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		g.agent("a", 0)
		asker := g.connect("r")
		task, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "go", Deadline: time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)}, hub.OpenOptions{})
		if err != nil {
			return // a refusal is fine too
		}
		if err := asker.Cancel(task.ID(), "stop"); err != nil {
			t.Fatal(err)
		}
		g.sleep(time.Second)
		if _, ok := g.hub.Agent(core.Principal{Operator: true}, "a"); !ok {
			t.Error("a second later: got the agent disconnected, want it connected")
		}
	})
}

func TestALongTimeoutOfAToolDoesNotEndAtOnce(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, b := g.agent("a", able), g.agent("b", able)
		a.CallTool("c1", "agent_ask", []byte(`{"to":"b","content":"hello","timeout_seconds":1e10}`))
		batch, ok := g.batch(b)
		if !ok {
			g.t.Fatalf("got %+v, want a request to b", g.tool(a).Fault)
		}
		g.report(b, batch.Task, core.Text{Text: "hi"}, core.Done{})
		if got := outputOf[asked](g, g.tool(a)); got.Text != "hi" {
			t.Errorf("got %+v, want hi", got)
		}
		task := call[asked](g, a, "agent_delegate", `{"to":"b","content":"do it"}`)
		a.CallTool("c1", "agent_result", []byte(`{"task_id":"`+string(task.TaskID)+`","wait_seconds":1e10}`))
		if b, ok := g.batch(a); ok {
			t.Errorf("got %+v before the end of the task, want nothing", b.Tool)
		}
	})
}
