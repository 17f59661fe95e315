package hub_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/task"
)

// An ended and recorded task is kept by the journal alone: no session that asked, answered
// or viewed it keeps it in memory.
func TestATaskThatWasReadToItsEndIsReleased(t *testing.T) {
	t.Run("asked by a session", func(t *testing.T) {
		checkReleased(t, func(s *hub.Session) *hub.Session { return s })
	})
	t.Run("asked by a child session", func(t *testing.T) { checkReleased(t, (*hub.Session).Child) })
}

func checkReleased(t *testing.T, of func(*hub.Session) *hub.Session) {
	opts := hub.Options{Limits: hub.Limits{FinishedTasks: 1}}
	promises := coretest.Watch(&opts) // without its readers: an idle one keeps unread events
	g := &testHub{t, hub.New(opts)}
	t.Cleanup(func() {
		if err := g.hub.Close(context.Background(), "the test is over"); err != nil {
			t.Error(err)
		}
		for _, broken := range promises.Broken() {
			t.Error(broken)
		}
	})
	agent, asker, viewer := g.agent("a", able), of(g.connect("r")), g.connect("r")
	turn := func() weak.Pointer[task.Task] {
		task := g.ask(asker, "a")
		if err := viewer.Watch(task, core.Cursor{}, nil); err != nil {
			t.Fatal(err)
		}
		g.report(agent, task, core.Text{Text: "hello"}, core.Done{})
		for _, s := range []*hub.Session{agent, asker, viewer} {
			g.events(s)
		}
		if err := viewer.Watch(task, task.Events()[len(task.Events())-1].Cursor(), nil); err != nil { // nothing to read any more
			t.Fatal(err)
		}
		if err := task.Recorded(t.Context(), task.Events()[len(task.Events())-1].Seq); err != nil {
			t.Fatal(err)
		}
		return weak.Make(task)
	}
	// Among timers that run, the runtime keeps some of those that were stopped.
	run := func(d time.Duration) {
		timer := time.AfterFunc(d, func() {})
		t.Cleanup(func() { timer.Stop() })
	}
	for range 100 {
		run(time.Minute)
	}
	var past []weak.Pointer[task.Task]
	for range 20 {
		past = append(past, turn())
		run(time.Hour)
	}
	runtime.GC()
	kept := 0
	for _, p := range past {
		if p.Value() != nil {
			kept++
		}
	}
	// The latest task is kept on purpose. An agent remembers its last cause only by id.
	if kept > 2 {
		t.Errorf("got %d of %d ended tasks in memory, want only the latest", kept, len(past))
	}
}

func TestOnlyAnOperatorAsksForAnotherPrincipal(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		g.agent("a", able)
		req := core.Request{To: core.ToAgent("a"), Content: "go"}
		alice := hub.OpenOptions{For: core.Principal{ID: "alice"}}
		_, err := g.connect("r").Open(req, alice)
		g.wantFault("asking as alice", err, core.CodeNotAuthorized)

		door := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: "door", Operator: true}})
		defer door.Close(nil)
		task, err := door.Open(req, alice)
		if err != nil {
			t.Fatal(err)
		}
		if got := task.From(); got != alice.For {
			t.Errorf("got the sender %+v, want %+v", got, alice.For)
		}
	})
}

// A client that abandons agent_result leaves nothing in memory, whatever its timeout, and
// neither does one that got a result.
func TestASessionThatWaitedForAResultIsReleased(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		wait := func() *hub.Session {
			s := g.hub.Connect(asker.Identity())
			s.CallTool("1", "agent_result", []byte(`{"task_id":"`+string(task.ID())+`","wait_seconds":1000000}`))
			return s
		}
		var past []weak.Pointer[hub.Session]
		leave := func(s *hub.Session) {
			s.Close(nil)
			past = append(past, weak.Make(s))
		}
		for range 20 {
			leave(wait())
		}
		var waiting []*hub.Session
		for range 20 {
			waiting = append(waiting, wait())
		}
		g.report(agent, task, core.Done{})
		for _, s := range waiting {
			if o := g.tool(s); o.Fault != nil {
				t.Errorf("got %v, want the result", o.Fault)
			}
			leave(s)
		}
		clear(waiting)
		g.wantReleased(past)
	})
}

// wantReleased fails the test if most of the sessions are still in memory.
func (g *testHub) wantReleased(sessions []weak.Pointer[hub.Session]) {
	g.t.Helper()
	runtime.GC()
	kept := 0
	for _, s := range sessions {
		if s.Value() != nil {
			kept++
		}
	}
	if kept > len(sessions)/2 { // the runtime keeps some stopped timers
		g.t.Errorf("got %d of %d sessions in memory, want few", kept, len(sessions))
	}
}

// closing is an auditor that calls a function after a command was executed and before it
// returns.
type closing struct{ after func(core.Call) }

func (c *closing) Audit(e policy.Entry) { c.after(e.Call) }

func TestASessionThatClosesWhileItOpensATaskIsReleased(t *testing.T) {
	for name, o := range map[string]hub.OpenOptions{"reading the events": {}, "awaiting the end": {Unwatched: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				executed := &closing{func(core.Call) {}}
				g := &testHub{t, coretest.NewHub(t, hub.Options{Auditor: executed})}
				agent := g.agent("a", able)
				open := func() weak.Pointer[hub.Session] {
					s := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: "r"}})
					executed.after = func(c core.Call) {
						if c.Command.Act() == core.ActOpen {
							s.Close(nil)
						}
					}
					task, err := s.Open(core.Request{To: core.ToAgent("a"), Content: "go"}, o)
					if err != nil {
						t.Fatal(err)
					}
					if o.Unwatched {
						s.AwaitEnd(task)
					}
					g.report(agent, task, core.Cancelled{})
					return weak.Make(s)
				}
				var past []weak.Pointer[hub.Session]
				for range 20 {
					past = append(past, open())
				}
				executed.after = func(core.Call) {}
				g.wantReleased(past)
			})
		})
	}
}
