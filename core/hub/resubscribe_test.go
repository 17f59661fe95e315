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

func TestRedeliveredNoticesAreSentAgainAfterAnotherLoss(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		publisher, subscriber := g.connect("publisher"), g.subscribe("subscriber", "n.*")
		back := func() {
			t.Helper()
			subscriber.Close(nil)
			subscriber = g.connect("subscriber")
			subscriber.Resubscribe()
		}
		subscriber.Close(nil)
		g.mustPublish(publisher, "n.1", "n.2")
		g.sleep(5 * time.Minute)
		back()
		g.wantNotices(subscriber, true, "n.1", "n.2")
		g.sleep(30 * time.Second)
		g.mustPublish(publisher, "n.3")
		g.wantNotices(subscriber, true, "n.3")
		back()
		g.wantNotices(subscriber, true, "n.1", "n.2", "n.3")
		g.sleep(2 * time.Minute)
		back()
		g.wantNotices(subscriber, true)
	})
}

func TestANoticeForAnAgentIsRedeliveredAfterEveryPossibleLoss(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		publisher := g.connect("publisher")
		agent := g.standby("agent")
		agent.Resubscribe()
		back := func() {
			t.Helper()
			agent.Close(nil)
			agent = g.standby("agent")
			agent.Resubscribe()
		}
		task, err := g.publish(publisher, "n.1", core.ToAgent("agent"))
		if err != nil {
			t.Fatal(err)
		}
		g.batches(agent)
		agent.Delivered(task.ID())
		for range 3 {
			g.sleep(45 * time.Second)
			back()
			g.wantNotices(agent, true, "n.1")
		}
		back()
		g.sleep(5 * time.Minute) // it reads nothing meanwhile
		back()
		g.wantNotices(agent, true, "n.1")
		g.sleep(2 * time.Minute)
		back()
		g.wantNotices(agent, true)
	})
}

func TestAnAckFromBeforeAMergeDoesNotCountForLaterNotices(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		publisher, one, two := g.connect("publisher"), g.connect("subscriber"), g.connect("subscriber")
		for s, topic := range map[*hub.Session]string{one: "a", two: "b"} {
			s.Resubscribe()
			if err := s.Subscribe([]string{topic}); err != nil {
				t.Fatal(err)
			}
		}
		g.mustPublish(publisher, "a", "b")
		onItsWay := g.batches(two)
		g.sleep(2 * time.Minute)
		one.Close(nil)
		g.wantNotices(two, false, "a", "b")
		two.NoticeDelivered(onItsWay[0].Task, onItsWay[0].Tag)
		g.sleep(2 * time.Minute)
		two.Close(nil)
		back := g.connect("subscriber")
		back.Resubscribe()
		g.wantNotices(back, true, "a", "b")
	})
}

func TestALostConnectionDeliversNoNoticesFromBeforeTheSubscription(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		publisher := g.connect("publisher")
		g.subscribe("other", ">")
		agent, also := g.standby("agent"), g.standby("agent")
		agent.Resubscribe()
		also.Resubscribe()
		g.mustPublish(publisher, "n.1")
		task, err := g.publish(publisher, "own", core.ToAgent("agent"))
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
		g.mustPublish(publisher, "n.2")
		g.wantNotices(kept, true, "own", "n.2")
	})
}

func TestASubscriberThatMissedNothingGetsNoGap(t *testing.T) {
	for _, taken := range []bool{true, false} {
		withHub(t, hub.Limits{NoticeBytes: 50_000}, func(g *testHub) {
			publisher, subscriber := g.connect("publisher"), g.subscribe("subscriber", "n.*")
			g.subscribe("other", ">")
			g.mustPublish(publisher, "n.1")
			g.wantNotices(subscriber, true, "n.1")
			g.sleep(2 * time.Minute)
			for range 100 { // more than is kept
				g.mustPublish(publisher, "m")
			}
			g.mustPublish(publisher, "n.2")
			g.wantNotices(subscriber, taken, "n.2")
			subscriber.Close(nil)
			subscriber = g.connect("subscriber")
			subscriber.Resubscribe()
			g.wantNotices(subscriber, true, "n.2")
		})
	}
}

func TestAConnectionThatEndsWhileItResubscribesLeavesNoSubscription(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		publisher, first := g.connect("publisher"), g.subscribe("subscriber", "n.*")
		first.Close(nil)
		for i := range 100 {
			passing := g.connect("subscriber")
			var life sync.WaitGroup
			life.Go(passing.Resubscribe)
			life.Go(func() { passing.Close(nil) })
			life.Wait()
			back := g.connect("subscriber")
			back.Resubscribe()
			name := fmt.Sprint("n.", i)
			g.mustPublish(publisher, name)
			g.sleep(2 * time.Minute)
			g.wantNotices(back, true, name)
			g.sleep(2 * time.Minute)
			back.Close(nil)
		}
	})
}

// lossyConnection is a connection of a subscriber. Its transport accepts every notice, except
// while it is stuck. Notices that it accepted within the last minute are lost with it.
type lossyConnection struct {
	*hub.Session
	stuck bool
	given []hub.Batch
	took  map[string]time.Time
}

func TestASubscriberGetsEveryNoticeDespiteLostConnections(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		withHub(t, hub.Limits{KeepNotices: 24 * time.Hour}, func(g *testHub) {
			publisher := g.connect("publisher")
			defer publisher.Close(nil)
			var here []*lossyConnection
			var published []string
			arrived := map[string]bool{}
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
				c := &lossyConnection{Session: g.connect("subscriber"), took: map[string]time.Time{}}
				c.Resubscribe()
				here = append(here, c)
			}
			lose := func(i int) {
				c := here[i]
				here = append(here[:i:i], here[i+1:]...)
				c.Close(nil)
				for topic, at := range c.took {
					arrived[topic] = arrived[topic] || time.Since(at) >= time.Minute
				}
			}
			connect()
			if err := here[0].Subscribe([]string{"n.*"}); err != nil {
				g.t.Fatal(err)
			}
			for range rapid.IntRange(1, 40).Draw(rt, "steps") {
				switch step := rapid.SampledFrom([]string{"publish", "publish", "sleep", "connect", "lose", "lose", "stick"}).Draw(rt, "step"); {
				case step == "publish":
					published = append(published, fmt.Sprint("n.", len(published)))
					g.mustPublish(publisher, published[len(published)-1])
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
			for _, topic := range published {
				if _, took := here[0].took[topic]; !took && !arrived[topic] {
					rt.Errorf("%s: got no certain delivery, want redelivery until there is one", topic)
				}
			}
			here[0].Close(nil)
		})
	})
}
