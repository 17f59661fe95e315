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

// stage is a hub whose peers a test plays by hand, under a fake clock.
type stage struct {
	t   *testing.T
	hub *hub.Hub
}

// onStage runs a test in a bubble of fake time, with a hub whose promises are
// checked at the end.
func onStage(t *testing.T, limits hub.Limits, test func(*stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(&stage{t, coretest.NewHub(t, hub.Options{Limits: limits})})
	})
}

func (g *stage) connect(id string) *hub.Session { return g.connectAs(core.Principal{ID: id}) }

// operator connects an operator.
func (g *stage) operator(id string) *hub.Session {
	return g.connectAs(core.Principal{ID: id, Operator: true})
}

func (g *stage) connectAs(p core.Principal) *hub.Session {
	s := g.hub.Connect(hub.Identity{Principal: p, Dialect: "test"})
	g.t.Cleanup(func() { s.Close(nil) })
	return s
}

func (g *stage) watchAll(s *hub.Session) {
	g.t.Helper()
	if err := s.WatchAll(); err != nil {
		g.t.Fatal(err)
	}
}

// agent joins an agent with the features of f; change alters its card.
func (g *stage) agent(id string, f core.Features, change ...func(*core.Card)) *hub.Session {
	g.t.Helper()
	s := g.connect(id)
	card := core.Card{ID: core.AgentID(id), Dialect: "test", Features: f}
	for _, c := range change {
		c(&card)
	}
	if err := s.Join(card, hub.JoinOptions{}); err != nil {
		g.t.Fatalf("joining %s: got %v, want no error", id, err)
	}
	return s
}

func (g *stage) open(s *hub.Session, req core.Request) *task.Task {
	g.t.Helper()
	if req.Content == "" {
		req.Content = "go"
	}
	task, err := s.Open(req, hub.Opening{})
	if err != nil {
		g.t.Fatalf("opening a task: got %v, want no error", err)
	}
	return task
}

func (g *stage) ask(s *hub.Session, to string) *task.Task {
	g.t.Helper()
	addr, err := core.ParseAddress(to)
	if err != nil {
		g.t.Fatal(err)
	}
	return g.open(s, core.Request{To: addr})
}

func (g *stage) report(s *hub.Session, task *task.Task, bodies ...core.Body) {
	g.t.Helper()
	for _, b := range bodies {
		if err := s.Report(task.ID(), b, nil); err != nil {
			g.t.Fatalf("reporting %s: got %v, want no error", b.Kind(), err)
		}
	}
}

// events reads everything that is ready for the session now.
func (g *stage) events(s *hub.Session) []core.Event {
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

// batch returns what is ready for the session now, if anything.
func (g *stage) batch(s *hub.Session) (hub.Batch, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
	defer cancel()
	b, err := s.Next(ctx)
	return b, err == nil
}

// kinds names what happened, in order.
func kinds(events []core.Event) []string {
	ks := []string{}
	for _, e := range events {
		ks = append(ks, e.Body.Kind().String())
	}
	return ks
}

func text(events []core.Event) string { return core.Fold(events).Text }

func (g *stage) wantKinds(what string, events []core.Event, want ...string) {
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

func (g *stage) wantFault(what string, err error, want core.Code) {
	g.t.Helper()
	if err == nil {
		g.t.Fatalf("%s: got no error, want a %s fault", what, want)
	}
	if f := core.AsFault(err); f.Code != want {
		g.t.Fatalf("%s: got %v, want a %s fault", what, f, want)
	}
}

// sleep lets fake time pass.
func (g *stage) sleep(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
