package hub_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

func TestRedeliveredNoticesComeAgainWhenTheirConnectionIsLost(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
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

func TestANoticeForAnAgentComesAgainAfterEveryPossibleLoss(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		teller := g.connect("teller")
		agent := g.standby("agent")
		agent.Resubscribe()
		back := func() {
			t.Helper()
			agent.Close(nil)
			agent = g.standby("agent")
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

func TestAnAckOfBeforeAMergeDoesNotCountForLaterNotices(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
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
		two.NoticeDelivered(onItsWay[0].Task, onItsWay[0].Tag)
		g.sleep(2 * time.Minute)
		two.Close(nil)
		back := g.connect("hearer")
		back.Resubscribe()
		g.hears(back, true, "a", "b")
	})
}

func TestALostConnectionDeliversNoNoticesFromBeforeTheSubscription(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		teller := g.connect("teller")
		g.subscribes("other", ">")
		agent, also := g.standby("agent"), g.standby("agent")
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

func TestASubscriberThatMissedNothingGetsNoGap(t *testing.T) {
	for _, taken := range []bool{true, false} {
		withHub(t, hub.Limits{NoticeBytes: 50_000}, func(g *testHub) {
			teller, hearer := g.connect("teller"), g.subscribes("hearer", "n.*")
			g.subscribes("other", ">")
			g.mustTell(teller, "n.1")
			g.hears(hearer, true, "n.1")
			g.sleep(2 * time.Minute)
			for range 100 { // more than is kept
				g.mustTell(teller, "m")
			}
			g.mustTell(teller, "n.2")
			g.hears(hearer, taken, "n.2")
			hearer.Close(nil)
			hearer = g.connect("hearer")
			hearer.Resubscribe()
			g.hears(hearer, true, "n.2")
		})
	}
}

func TestAConnectionThatEndsWhileItResubscribesLeavesNothing(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		teller, first := g.connect("teller"), g.subscribes("hearer", "n.*")
		first.Close(nil)
		for i := range 100 {
			passing := g.connect("hearer")
			var life sync.WaitGroup
			life.Go(passing.Resubscribe)
			life.Go(func() { passing.Close(nil) })
			life.Wait()
			back := g.connect("hearer")
			back.Resubscribe()
			name := fmt.Sprint("n.", i)
			g.mustTell(teller, name)
			g.sleep(2 * time.Minute)
			g.hears(back, true, name)
			g.sleep(2 * time.Minute)
			back.Close(nil)
		}
	})
}

// hearer is a connection of a subscriber, whose transport takes what it is given, but
// while it is stuck; when it is lost, so is what that took within the last minute.
type hearer struct {
	*hub.Session
	stuck bool
	given []hub.Batch
	took  map[string]time.Time
}

func TestASubscriberGetsEverythingHoweverItLosesItsConnections(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		withHub(t, hub.Limits{KeepNotices: 24 * time.Hour}, func(g *testHub) {
			teller := g.connect("teller")
			defer teller.Close(nil)
			var here []*hearer
			var told []string
			heard := map[string]bool{}
			read := func() {
				for _, c := range here {
					c.given = append(c.given, g.batches(c.Session)...)
					for ; len(c.given) > 0 && !c.stuck; c.given = c.given[1:] {
						if b := c.given[0]; b.Role == task.Subscriber && b.Gap == nil {
							c.NoticeDelivered(b.Task, b.Tag)
							c.took[b.Task.Request().Notice.Topic] = time.Now()
						}
					}
				}
			}
			connect := func() {
				c := &hearer{Session: g.connect("hearer"), took: map[string]time.Time{}}
				c.Resubscribe()
				here = append(here, c)
			}
			lose := func(i int) {
				c := here[i]
				here = append(here[:i:i], here[i+1:]...)
				c.Close(nil)
				for topic, at := range c.took {
					heard[topic] = heard[topic] || time.Since(at) >= time.Minute
				}
			}
			connect()
			if err := here[0].Subscribe([]string{"n.*"}); err != nil {
				g.t.Fatal(err)
			}
			for range rapid.IntRange(1, 40).Draw(rt, "steps") {
				switch step := rapid.SampledFrom([]string{"tell", "tell", "sleep", "connect", "lose", "lose", "stick"}).Draw(rt, "step"); {
				case step == "tell":
					told = append(told, fmt.Sprint("n.", len(told)))
					g.mustTell(teller, told[len(told)-1])
				case step == "sleep":
					g.sleep(time.Duration(rapid.IntRange(1, 90).Draw(rt, "seconds")) * time.Second)
				case step == "connect" && len(here) < 3:
					connect()
				case step == "lose" && len(here) > 0:
					lose(rapid.IntRange(0, len(here)-1).Draw(rt, "which"))
				case step == "stick" && len(here) > 0:
					c := here[rapid.IntRange(0, len(here)-1).Draw(rt, "which")]
					c.stuck = !c.stuck
				}
				read()
			}
			for len(here) > 0 {
				lose(0)
				read()
			}
			connect()
			read()
			for _, topic := range told {
				if _, took := here[0].took[topic]; !took && !heard[topic] {
					rt.Errorf("%s: got it never heard for certain, want it told until it is", topic)
				}
			}
			here[0].Close(nil)
		})
	})
}
