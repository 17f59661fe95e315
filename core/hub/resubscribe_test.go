package hub_test

import (
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

func TestWhatASubscriberMissedComesAgainWhenHeLosesTheConnectionOnWhichItCame(t *testing.T) {
	onStage(t, hub.Limits{}, func(g *stage) {
		teller, hearer := g.connect("teller"), g.subscribes("hearer", "n.*")
		back := func() {
			t.Helper()
			hearer.Close(nil)
			hearer = g.connect("hearer")
			hearer.Resubscribe()
		}
		hearer.Close(nil)
		g.mustTell(teller, "n.1", "n.2")
		g.sleep(5 * time.Minute)
		back()
		g.hears(hearer, true, "n.1", "n.2")
		g.sleep(30 * time.Second)
		g.mustTell(teller, "n.3")
		g.hears(hearer, true, "n.3")
		back()
		g.hears(hearer, true, "n.1", "n.2", "n.3")
		g.sleep(2 * time.Minute)
		back()
		g.hears(hearer, true)
	})
}

func TestANoticeForAnAgentComesAgainAsOftenAsItMayHaveBeenLost(t *testing.T) {
	onStage(t, hub.Limits{}, func(g *stage) {
		teller := g.connect("teller")
		agent := g.onCall("agent")
		agent.Resubscribe()
		back := func() {
			t.Helper()
			agent.Close(nil)
			agent = g.onCall("agent")
			agent.Resubscribe()
		}
		task, err := g.tells(teller, "n.1", core.ToAgent("agent"))
		if err != nil {
			t.Fatal(err)
		}
		g.batches(agent)
		agent.Delivered(task.ID())
		for range 3 {
			g.sleep(45 * time.Second)
			back()
			g.hears(agent, true, "n.1")
		}
		back()
		g.sleep(5 * time.Minute) // it reads nothing meanwhile
		back()
		g.hears(agent, true, "n.1")
		g.sleep(2 * time.Minute)
		back()
		g.hears(agent, true)
	})
}

func TestWhatWasOnItsWayToASubscriberWhoTakesMoreOverIsNotTakenForWhatComesThen(t *testing.T) {
	onStage(t, hub.Limits{}, func(g *stage) {
		teller, one, two := g.connect("teller"), g.connect("hearer"), g.connect("hearer")
		for s, topic := range map[*hub.Session]string{one: "a", two: "b"} {
			s.Resubscribe()
			if err := s.Subscribe([]string{topic}); err != nil {
				t.Fatal(err)
			}
		}
		g.mustTell(teller, "a", "b")
		onItsWay := g.batches(two)
		g.sleep(2 * time.Minute)
		one.Close(nil)
		g.hears(two, false, "a", "b")
		two.Heard(onItsWay[0].Task, onItsWay[0].Tag)
		g.sleep(2 * time.Minute)
		two.Close(nil)
		back := g.connect("hearer")
		back.Resubscribe()
		g.hears(back, true, "a", "b")
	})
}

func TestWhatWasToldBeforeAnAgentSubscribedIsNotHeardBecauseItsConnectionWasLost(t *testing.T) {
	onStage(t, hub.Limits{}, func(g *stage) {
		teller := g.connect("teller")
		g.subscribes("other", ">")
		agent, also := g.onCall("agent"), g.onCall("agent")
		agent.Resubscribe()
		also.Resubscribe()
		g.mustTell(teller, "n.1")
		task, err := g.tells(teller, "own", core.ToAgent("agent"))
		if err != nil {
			t.Fatal(err)
		}
		lost, kept := agent, also
		if g.batches(agent) == nil {
			lost, kept = also, agent
			g.batches(also)
		}
		lost.Delivered(task.ID())
		if err := kept.Subscribe([]string{"n.*"}); err != nil {
			t.Fatal(err)
		}
		lost.Close(nil)
		g.mustTell(teller, "n.2")
		g.hears(kept, true, "own", "n.2")
	})
}
