package hub_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// Each test here is named after a failure that was seen in the field. docs/failures.md
// lists them, and those that are in other packages.

func TestOrderLost(t *testing.T) {
	const chunks, readers = 3000, 4
	h := coretest.NewHub(t, hub.Options{})
	agent := h.Connect(hub.Identity{Principal: core.Principal{ID: "a"}})
	defer agent.Close(nil)
	if err := agent.Join(core.Card{ID: "a", Features: able}, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	asker := h.Connect(hub.Identity{Principal: core.Principal{ID: "r"}})
	defer asker.Close(nil)
	task, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sessions := []*hub.Session{asker}
	for range readers {
		s := h.Connect(hub.Identity{Principal: core.Principal{ID: "r"}})
		defer s.Close(nil)
		if err := s.Watch(task, core.Cursor{}, nil); err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, s)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var group sync.WaitGroup
	group.Go(func() {
		for i := range chunks {
			_ = agent.Report(task.ID(), core.Text{Text: fmt.Sprint(i)}, nil)
		}
		_ = agent.Report(task.ID(), core.Done{}, nil)
	})
	group.Go(func() { // interleave events of others
		for i := range chunks {
			_ = asker.Inject(hub.NoWait, task.ID(), core.Injected{Content: fmt.Sprint(i)}) // a conflict once it has ended
		}
	})
	read := make([][]core.Event, len(sessions))
	for i, s := range sessions {
		group.Go(func() {
			for {
				b, err := s.Next(ctx)
				if err != nil {
					return
				}
				read[i] = append(read[i], b.Events...)
				if n := len(read[i]); n > 0 && read[i][n-1].Body.Kind().Ends() {
					return
				}
			}
		})
	}
	group.Wait()
	for i, events := range read {
		next := 0
		for j, e := range events {
			if e.Seq != uint64(j+1) {
				t.Fatalf("reader %d: got sequence %d at index %d, want %d", i, e.Seq, j, j+1)
			}
			if b, ok := e.Body.(core.Text); ok {
				if b.Text != fmt.Sprint(next) {
					t.Fatalf("reader %d: got chunk %s, want %d", i, b.Text, next)
				}
				next++
			}
		}
		if next != chunks {
			t.Errorf("reader %d: got %d chunks, want %d", i, next, chunks)
		}
	}
}

func TestAnAnswerInsteadOfAStopKeepsTheOrderOfTheEvents(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		g.report(agent, task, core.Text{Text: "1"})
		if err := asker.Cancel(task.ID(), "enough"); err != nil {
			t.Fatal(err)
		}
		g.report(agent, task, core.Text{Text: "2"}, core.Done{})
		g.wantKinds("the requester read", g.events(asker), "opened", "assigned", "text", "cancel_requested", "text", "done")
	})
}

// A request that the hub refuses, for any reason, is a task with an end, and is in the
// journal. Only invalid requests are not: see
// TestAnInvalidRequestIsRefusedBeforeAnythingElse.
func TestDeniedRequestMissingFromTheLogWhateverTheReason(t *testing.T) {
	for _, tt := range []struct {
		name string
		ask  func(g *testHub) (*task.Task, error)
		want core.Code
	}{
		{"no agent has the id", func(g *testHub) (*task.Task, error) { return g.try(g.connect("r"), core.ToAgent("nobody")) }, core.CodeUnknownAgent},
		{"no agent has the capability", func(g *testHub) (*task.Task, error) { return g.try(g.connect("r"), core.ToCapability("x")) }, core.CodeUnknownAgent},
		{"no agent serves the domain", func(g *testHub) (*task.Task, error) { return g.try(g.connect("r"), core.ToDomain("x.y")) }, core.CodeUnknownDomain},
		{"the operator does not allow it", func(g *testHub) (*task.Task, error) {
			g.agent("a", able)
			return g.try(g.connect("limited"), core.ToAgent("a"))
		}, core.CodeNotAuthorized},
		{"the queue is full", func(g *testHub) (*task.Task, error) {
			g.agent("a", able)
			r := g.connect("r")
			g.ask(r, "a")
			g.ask(r, "a")
			return g.try(r, core.ToAgent("a"))
		}, core.CodeOverloaded},
		{"the agent is leaving", func(g *testHub) (*task.Task, error) {
			g.agent("a", able).SetLoad(core.LoadDraining)
			return g.try(g.connect("r"), core.ToAgent("a"))
		}, core.CodeUnreachable},
		{"it would be a loop", func(g *testHub) (*task.Task, error) {
			a := g.agent("a", able)
			g.ask(g.connect("r"), "a")
			return g.try(a, core.ToAgent("a"))
		}, core.CodeLoop},
		{"the chain is too long", func(g *testHub) (*task.Task, error) {
			a, b, c := g.agent("a", able), g.agent("b", able), g.agent("c", able)
			g.agent("d", able)
			g.ask(g.connect("r"), "a")
			g.ask(a, "b")
			g.ask(b, "c")
			return g.try(c, core.ToAgent("d"))
		}, core.CodeLoop},
		{"its cause is a task of another principal", func(g *testHub) (*task.Task, error) {
			a := g.agent("a", able)
			g.agent("b", able)
			other := g.ask(g.connect("r"), "b")
			return a.Open(core.Request{To: core.ToAgent("b"), Content: "go", Cause: other.ID()}, hub.OpenOptions{})
		}, core.CodeNotAuthorized},
		{"the agent takes no notices", func(g *testHub) (*task.Task, error) {
			g.agent("a", able)
			return g.connect("r").Open(core.Request{Intent: core.IntentNotify, To: core.ToAgent("a"), Notice: &core.Notice{Topic: "x"}}, hub.OpenOptions{})
		}, core.CodeUnsupported},
		{"the agent has no options", func(g *testHub) (*task.Task, error) {
			g.agent("a", able)
			return g.connect("r").Open(core.Request{To: core.ToAgent("a"), Content: "x", Options: core.Options{"mode": "plan"}}, hub.OpenOptions{})
		}, core.CodeUnsupported},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &testHub{t, coretest.NewHub(t, hub.Options{
					Limits: hub.Limits{QueueLength: 1, Hops: 2}, Authorizer: notAsking(t, "limited", "a"),
				})}
				watcher := g.operator("operator")
				g.watchAll(watcher)
				task, err := tt.ask(g)
				g.wantFault("the request", err, tt.want)
				if task == nil {
					t.Fatal("got no task with the fault, want the one that records it")
				}
				g.wantKinds("its log", task.Events(), "opened", "failed")
				if r := task.Receipt(); r.Stage != core.StageRefused || r.Fault == nil || r.Fault.Code != tt.want {
					t.Errorf("got the receipt %+v, want refused as %s", r, tt.want)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := task.Recorded(ctx, 2); err != nil {
					t.Errorf("the journal: got %v, want it recorded", err)
				}
				var seen []core.Event
				for _, b := range g.batches(watcher) {
					if b.Task == task {
						seen = append(seen, b.Events...)
					}
				}
				g.wantKinds("an operator that watches all", seen, "opened", "failed")
			})
		})
	}
}

// try asks and returns the outcome.
func (g *testHub) try(s *hub.Session, to core.Address) (*task.Task, error) {
	return s.Open(core.Request{To: to, Content: "go"}, hub.OpenOptions{})
}

// The three events of an approval are linked by the id of the tool call: requested, decided
// (by the principal that the hub knows, not a claimed one) and executed. After a denial
// nothing is executed, and the log shows that.
func TestApprovalGivenButNothingProvesWhatFollowed(t *testing.T) {
	for _, approved := range []bool{true, false} {
		t.Run(fmt.Sprintf("approved %v", approved), func(t *testing.T) {
			withHub(t, hub.Limits{}, func(g *testHub) {
				agent, asker := g.agent("a", able), g.connect("r")
				task := g.ask(asker, "a")
				g.report(agent, task, core.ToolCall{ID: "t1", Name: "rm"}, core.ApprovalRequested{ID: "t1", Name: "rm"})
				g.sleep(time.Second)
				if got := g.events(agent); len(got) != 1 {
					t.Fatalf("before the decision the agent got %v, want only its task", kinds(got))
				}
				if err := asker.Decide(hub.NoWait, task.ID(), core.ApprovalDecided{ID: "t1", Approved: approved, By: "another"}); err != nil {
					t.Fatal(err)
				}
				// The agent acts on what it reads.
				for _, e := range g.events(agent) {
					d, ok := e.Body.(core.ApprovalDecided)
					switch {
					case !ok:
					case d.Approved:
						g.report(agent, task, core.ToolState{ID: d.ID, State: core.ToolRunning}, core.ToolResult{ID: d.ID, Output: "removed"})
					default:
						g.report(agent, task, core.ToolState{ID: d.ID, State: core.ToolDenied})
					}
				}
				g.report(agent, task, core.Done{})

				var held, decided, executed uint64
				var by string
				for _, e := range task.Events() {
					switch b := e.Body.(type) {
					case core.ApprovalRequested:
						held = e.Seq
					case core.ApprovalDecided:
						decided, by = e.Seq, b.By
						if b.ID != "t1" || b.Approved != approved {
							t.Errorf("got the decision %+v, want one on t1, approved %v", b, approved)
						}
					case core.ToolResult:
						executed = e.Seq
						if b.ID != "t1" {
							t.Errorf("got the result of %q, want of t1", b.ID)
						}
					}
				}
				if held == 0 || decided <= held || (executed > decided) != approved || !approved && executed != 0 {
					t.Errorf("got requested at %d, decided at %d and executed at %d, want this order, and the third only if approved (%v)", held, decided, executed, approved)
				}
				if by != "r" {
					t.Errorf("got the decision by %q, want by r, as the hub knows", by)
				}
				ctx, cancel := context.WithTimeout(g.t.Context(), time.Minute)
				defer cancel()
				if err := task.Recorded(ctx, uint64(len(task.Events()))); err != nil {
					t.Errorf("the journal: got %v, want all of it recorded", err)
				}
			})
		})
	}
}
