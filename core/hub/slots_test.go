package hub_test

import (
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

func TestDisconnectingAnAgentThatIgnoresACancelIsSettable(t *testing.T) {
	for _, c := range []struct {
		name  string
		does  hub.Disconnect
		slots int
		gone  bool
	}{
		{"by itself, of one task", 0, 1, true},
		{"by itself, of several", 0, 2, false},
		{"single, of one task", hub.DisconnectSingle, 1, true},
		{"single, of several", hub.DisconnectSingle, 2, false},
		{"always, of one task", hub.DisconnectAlways, 1, true},
		{"always, of several", hub.DisconnectAlways, 2, true},
		{"never, of one task", hub.DisconnectNever, 1, false},
		{"never, of several", hub.DisconnectNever, 2, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			withHub(t, hub.Limits{Disconnect: c.does, CancelGrace: time.Second, SlotGrace: time.Second}, func(g *testHub) {
				g.agent("a", able, func(card *core.Card) { card.MaxConcurrent = c.slots })
				asker := g.connect("r")
				task := g.ask(asker, "a")
				if err := asker.Cancel(task.ID(), "enough"); err != nil {
					t.Fatal(err)
				}
				g.sleep(time.Second)
				if got := task.Answer().End; got != core.KindCancelled {
					t.Errorf("after the grace: got %s, want cancelled", got)
				}
				g.sleep(time.Second)
				a, here := g.hub.Agent(core.Principal{Operator: true}, "a")
				if here == c.gone || here && a.Load.Active != 0 {
					t.Errorf("after the second grace: got connected %t with %d active, want disconnected %t, else none active", here, a.Load.Active, c.gone)
				}
				if n := g.hub.Counters(); n["cancel.unanswered"] != 1 || n["agent.overdue"] != 1 {
					t.Errorf("got %v, want one cancel unanswered and one agent overdue", n)
				}
			})
		})
	}
}

func TestAnAgentThatMissedACancelStaysWhileItSaysThatItIsAlive(t *testing.T) {
	withHub(t, hub.Limits{CancelGrace: time.Second, SlotGrace: time.Second}, func(g *testHub) {
		a, asker := g.agent("a", able), g.connect("r")
		task := g.open(asker, core.Request{To: core.ToAgent("a"), Deadline: time.Now().Add(20 * time.Second)})
		if err := asker.Cancel(task.ID(), "enough"); err != nil {
			t.Fatal(err)
		}
		here := func() bool {
			_, is := g.hub.Agent(core.Principal{Operator: true}, "a")
			return is
		}
		for range 20 {
			if !here() {
				t.Fatal("got the agent disconnected while it is alive, want it to stay until the deadline")
			}
			g.sleep(900 * time.Millisecond)
			a.Seen()
		}
		g.sleep(3 * time.Second)
		if here() {
			t.Error("after the deadline: got the agent still here, want it disconnected")
		}
		if n := g.hub.Counters()["agent.overdue"]; n != 1 {
			t.Errorf("got %d agents overdue, want one", n)
		}
	})
}

func TestAnAgentThatMissedADeadlineStaysForAWhileIfItSaysThatItIsAlive(t *testing.T) {
	withHub(t, hub.Limits{CancelGrace: time.Second, SlotGrace: time.Second}, func(g *testHub) {
		a, asker := g.agent("a", able), g.connect("r")
		g.open(asker, core.Request{To: core.ToAgent("a"), Deadline: time.Now().Add(2 * time.Second)})
		here := func() bool {
			_, is := g.hub.Agent(core.Principal{Operator: true}, "a")
			return is
		}
		for range 12 { // 2 s to the deadline, and 12 times the grace
			g.sleep(900 * time.Millisecond)
			a.Seen()
			if !here() {
				t.Fatal("got the agent disconnected while it is alive, want it to stay for a while")
			}
		}
		for range 5 {
			g.sleep(900 * time.Millisecond)
			a.Seen()
		}
		if here() {
			t.Error("after twelve times the grace: got the agent still here, want it disconnected")
		}
	})
}

func TestTheSettingsForOverdueAgentsHaveNames(t *testing.T) {
	for _, want := range []hub.Disconnect{hub.DisconnectSingle, hub.DisconnectAlways, hub.DisconnectNever} {
		var got hub.Disconnect
		if err := got.UnmarshalText([]byte(want.String())); err != nil || got != want {
			t.Errorf("got %v and %v, want %v", got, err, want)
		}
	}
	var d hub.Disconnect
	for _, name := range []string{"", "sometimes"} {
		if err := d.UnmarshalText([]byte(name)); core.AsFault(err) == nil || core.AsFault(err).Code != core.CodeInvalid {
			t.Errorf("%q: got %v, want an invalid fault", name, err)
		}
	}
}
