package hub_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// testHub is a hub with peers controlled by a test, under a fake clock.
type testHub struct {
	t   *testing.T
	hub *hub.Hub
}

// withHub runs a test under a fake clock, with a hub whose promises are checked at the end.
func withHub(t *testing.T, limits hub.Limits, test func(*testHub)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(&testHub{t, coretest.NewHub(t, hub.Options{Limits: limits})})
	})
}

func (g *testHub) connect(id string) *hub.Session { return g.connectAs(core.Principal{ID: id}) }

// operator connects an operator.
func (g *testHub) operator(id string) *hub.Session {
	return g.connectAs(core.Principal{ID: id, Operator: true})
}

func (g *testHub) connectAs(p core.Principal) *hub.Session {
	s := g.hub.Connect(hub.Identity{Principal: p, Dialect: "test"})
	g.t.Cleanup(func() { s.Close(nil) })
	return s
}

func (g *testHub) watchAll(s *hub.Session) {
	g.t.Helper()
	if err := s.WatchAll(); err != nil {
		g.t.Fatal(err)
	}
}

// agent joins an agent with the features of f; change alters its card.
func (g *testHub) agent(id string, f core.Features, change ...func(*core.Card)) *hub.Session {
	g.t.Helper()
	return g.agentOf(core.Principal{ID: id}, id, f, change...)
}

// agentOf joins an agent of a principal.
func (g *testHub) agentOf(p core.Principal, id string, f core.Features, change ...func(*core.Card)) *hub.Session {
	g.t.Helper()
	s := g.connectAs(p)
	card := core.Card{ID: core.AgentID(id), Dialect: "test", Features: f}
	for _, c := range change {
		c(&card)
	}
	if err := s.Join(card, hub.JoinOptions{}); err != nil {
		g.t.Fatalf("joining %s: got %v, want no error", id, err)
	}
	return s
}

func (g *testHub) open(s *hub.Session, req core.Request) *task.Task {
	g.t.Helper()
	if req.Content == "" {
		req.Content = "go"
	}
	task, err := s.Open(req, hub.OpenOptions{})
	if err != nil {
		g.t.Fatalf("opening a task: got %v, want no error", err)
	}
	return task
}

func (g *testHub) ask(s *hub.Session, to string) *task.Task {
	g.t.Helper()
	addr, err := core.ParseAddress(to)
	if err != nil {
		g.t.Fatal(err)
	}
	return g.open(s, core.Request{To: addr})
}

func (g *testHub) report(s *hub.Session, task *task.Task, bodies ...core.Body) {
	g.t.Helper()
	for _, b := range bodies {
		if err := s.Report(task.ID(), b, nil); err != nil {
			g.t.Fatalf("reporting %s: got %v, want no error", b.Kind(), err)
		}
	}
}

// events reads all events that are ready for the session.
func (g *testHub) events(s *hub.Session) []core.Event {
	g.t.Helper()
	var all []core.Event
	for {
		b, ok := g.batch(s)
		if !ok {
			return all
		}
		all = append(all, b.Events...)
	}
}

// batch returns the next batch if one is ready for the session.
func (g *testHub) batch(s *hub.Session) (hub.Batch, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
	defer cancel()
	b, err := s.Next(ctx)
	return b, err == nil
}

// kinds returns the kinds of the events, in order.
func kinds(events []core.Event) []string {
	ks := []string{}
	for _, e := range events {
		ks = append(ks, e.Body.Kind().String())
	}
	return ks
}

func text(events []core.Event) string { return core.Fold(events).Text }

func (g *testHub) wantKinds(what string, events []core.Event, want ...string) {
	g.t.Helper()
	got := kinds(events)
	if len(got) == len(want) {
		same := true
		for i := range got {
			same = same && got[i] == want[i]
		}
		if same {
			return
		}
	}
	g.t.Errorf("%s: got %v, want %v", what, got, want)
}

func (g *testHub) wantFault(what string, err error, want core.Code) {
	g.t.Helper()
	if err == nil {
		g.t.Fatalf("%s: got no error, want a %s fault", what, want)
	}
	if f := core.AsFault(err); f.Code != want {
		g.t.Fatalf("%s: got %v, want a %s fault", what, f, want)
	}
}

// sleep advances the fake clock.
func (g *testHub) sleep(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
