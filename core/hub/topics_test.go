package hub_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/task"
)

// subscribes connects somebody who subscribes.
func (g *testHub) subscribes(id string, topics ...string) *hub.Session {
	g.t.Helper()
	s := g.connect(id)
	if err := s.Subscribe(topics); err != nil {
		g.t.Fatalf("%s subscribes to %v: got %v, want no error", id, topics, err)
	}
	return s
}

// tells publishes a notice.
func (g *testHub) tells(s *hub.Session, topic string, to core.Address) (*task.Task, error) {
	g.t.Helper()
	return s.Open(core.Request{To: to, Intent: core.IntentNotify, Notice: &core.Notice{Topic: topic}}, hub.OpenOptions{Unwatched: true})
}

func (g *testHub) mustTell(s *hub.Session, topics ...string) {
	g.t.Helper()
	for _, topic := range topics {
		if _, err := g.tells(s, topic, core.ToHub()); err != nil {
			g.t.Fatalf("telling %s: got %v, want no error", topic, err)
		}
	}
}

// hears checks what a subscriber is given. With taken, its transport takes it.
func (g *testHub) hears(s *hub.Session, taken bool, want ...string) {
	g.t.Helper()
	var got []string
	for _, b := range g.batches(s) {
		switch {
		case b.Role != task.Subscriber:
		case b.Gap != nil:
			got = append(got, fmt.Sprintf("gap of %d", b.Gap.To-b.Gap.From+1))
		default:
			opened := b.Events[0].Body.(core.Opened)
			got = append(got, opened.Request.Notice.Topic)
			if taken {
				s.NoticeDelivered(b.Task, b.Tag)
			}
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		g.t.Errorf("heard: got %v, want %v", got, want)
	}
}

func TestANoticeForTheHubReachesAllSubscribers(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		teller := g.subscribes("teller", ">")
		one, rest, other := g.subscribes("one", "hans.*"), g.subscribes("rest", "hans.>", "hans.*"), g.subscribes("other", "kit.>")
		asked, err := g.tells(teller, "hans.location", core.ToHub())
		if err != nil || asked.State() != task.Ended || asked.Answer().Fault != nil {
			t.Errorf("got %v and the task %v, want it done", err, asked.State())
		}
		g.mustTell(teller, "hans.location.gym")
		g.hears(one, true, "hans.location")
		g.hears(rest, true, "hans.location", "hans.location.gym")
		g.hears(other, true)
		g.hears(teller, true) // who tells knows
	})
}

func TestANoticeForAnAgentReachesSubscribersTooUnlessItIsPrivate(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, hearer, teller := g.agent("a", core.FeatureNotices), g.subscribes("hearer", ">"), g.connect("teller")
		task, err := g.tells(teller, "hans.location", core.ToAgent("a"))
		if err != nil {
			t.Fatalf("telling an agent: got %v, want no error", err)
		}
		agent.Delivered(task.ID())
		private, err := teller.Open(core.Request{To: core.ToAgent("a"), Intent: core.IntentNotify, Notice: &core.Notice{Topic: "secret"}}, hub.OpenOptions{Private: true})
		if err != nil {
			t.Fatal(err)
		}
		agent.Delivered(private.ID())
		_, err = g.tells(teller, "lost", core.ToAgent("nobody"))
		g.wantFault("to nobody", err, core.CodeUnknownAgent)
		g.hears(hearer, true, "hans.location")
	})
}

func TestTopicsOfTheHubAreRefused(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, teller := g.agent("a", core.FeatureNotices), g.connect("teller")
		for _, topic := range []string{"dragoman.context", "dragoman.shutdown", "dragoman."} {
			_, err := g.tells(teller, topic, core.ToAgent("a"))
			g.wantFault(topic, err, core.CodeInvalid)
		}
		if got := g.batches(agent); len(got) > 0 {
			t.Errorf("the agent: got %+v, want nothing", got)
		}
	})
}

func TestANoticeWithoutSubscribersIsRefused(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		teller := g.connect("teller")
		_, err := g.tells(teller, "hans.location", core.ToHub())
		g.wantFault("without subscribers", err, core.CodeUnreachable)
		hearer := g.subscribes("hearer", "hans.*")
		_, err = g.tells(teller, "kit.location", core.ToHub())
		g.wantFault("of another topic", err, core.CodeUnreachable)
		_, err = g.tells(teller, "dragoman.shutdown", core.ToHub())
		g.wantFault("of the hub's own", err, core.CodeInvalid)
		if !hearer.Unsubscribe([]string{"hans.*"}) || hearer.Unsubscribe(nil) {
			t.Error("unsubscribing twice: want that the first undoes it and the second finds nothing")
		}
		_, err = g.tells(teller, "hans.location", core.ToHub())
		g.wantFault("once it has unsubscribed", err, core.CodeUnreachable)
	})
}

func TestAPrincipalNotifiesOnlySubscribersThatItMayAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := policy.Rules{Ask: map[string][]core.AgentID{"teller": {"friend"}}}
		g := &testHub{t, coretest.NewHub(t, hub.Options{Rules: rules})}
		teller := g.connect("teller")
		friend, foe := g.standby("friend"), g.standby("foe")
		for _, s := range []*hub.Session{friend, foe} {
			if err := s.Subscribe([]string{"a"}); err != nil {
				t.Fatal(err)
			}
		}
		g.mustTell(teller, "a")
		g.hears(friend, true, "a")
		g.hears(foe, true)
	})
}

func TestAReturningSubscriberGetsWhatItMissedAndWhatMayBeLost(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		teller, hearer := g.connect("teller"), g.subscribes("hearer", "n.*")
		g.mustTell(teller, "n.1")
		g.hears(hearer, true, "n.1")
		g.sleep(2 * time.Minute)
		g.mustTell(teller, "n.2")
		g.hears(hearer, true, "n.2") // taken a moment before the connection was lost
		g.mustTell(teller, "n.3")
		g.hears(hearer, false, "n.3") // given, and not taken
		hearer.Close(nil)
		g.mustTell(teller, "n.4")
		g.connect("somebody else").Resubscribe()
		hearer = g.connect("hearer")
		hearer.Resubscribe()
		g.mustTell(teller, "n.5")
		g.hears(hearer, true, "n.2", "n.3", "n.4", "n.5")
		hearer.Close(nil)
		g.sleep(11 * time.Minute)
		_, err := g.tells(teller, "n.6", core.ToHub())
		g.wantFault("once it is not waited for any more", err, core.CodeUnreachable)
		hearer = g.connect("hearer")
		hearer.Resubscribe()
		g.hears(hearer, true)
	})
}

func TestASubscriberThatReturnsBeforeItsOldConnectionEndsGetsEverything(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		teller, lost := g.connect("teller"), g.connect("hearer")
		lost.Resubscribe()
		if err := lost.Subscribe([]string{"n.*"}); err != nil {
			t.Fatal(err)
		}
		g.mustTell(teller, "n.1")
		g.hears(lost, true, "n.1") // into a connection that nobody reads any more
		also, back := g.connect("hearer"), g.connect("hearer")
		also.Resubscribe()
		back.Resubscribe()
		if err := also.Subscribe([]string{"m"}); err != nil {
			t.Fatal(err)
		}
		g.mustTell(teller, "n.2", "m")
		lost.Close(nil)
		g.hears(back, true, "n.1", "n.2")
		g.mustTell(teller, "n.3")
		g.hears(back, true, "n.3")
		back.Close(nil) // what it had is now the other's
		g.mustTell(teller, "n.4")
		g.hears(also, true, "n.1", "n.2", "m", "n.3", "n.4")
		also.Close(nil)
		g.mustTell(teller, "m", "n.5")
	})
}

func TestTheSubscriptionsOfTwoConnectionsAreMerged(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		teller, one, two := g.connect("teller"), g.subscribes("hearer", "a"), g.subscribes("hearer", "b")
		one.Close(nil)
		two.Close(nil)
		g.mustTell(teller, "a", "b")
		back := g.connect("hearer")
		back.Resubscribe()
		g.hears(back, true, "a", "b")
	})
}

func TestANoticeForAnAgentComesAgainIfItMayBeLost(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		teller := g.connect("teller")
		agent := g.standby("agent")
		agent.Resubscribe()
		tell := func(topic string) {
			t.Helper()
			if _, err := g.tells(teller, topic, core.ToAgent("agent")); err != nil {
				t.Fatalf("telling %s: got %v, want no error", topic, err)
			}
		}
		take := func(want string) {
			t.Helper()
			for _, b := range g.batches(agent) {
				if b.Role == task.Agent && b.Events[0].Body.Kind() == core.KindAssigned {
					if got := b.Task.Request().Notice.Topic; got != want {
						t.Errorf("got %s, want %s", got, want)
					}
					agent.Delivered(b.Task.ID())
				}
			}
		}
		tell("n.1")
		take("n.1")
		g.sleep(2 * time.Minute)
		tell("n.2")
		take("n.2")
		tell("n.3") // its transport does not take it: the teller is told
		agent.Close(nil)
		agent = g.standby("agent")
		agent.Resubscribe()
		g.hears(agent, true, "n.2")
		tell("n.4")
		take("n.4")
		g.hears(agent, true)
		g.sleep(2 * time.Minute)
		agent.Close(nil)
		agent = g.standby("agent")
		agent.Resubscribe()
		g.hears(agent, true)
	})
}

func TestNoticesBeforeASubscriptionAreNotDelivered(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		teller, first := g.connect("teller"), g.subscribes("first", ">")
		g.mustTell(teller, "a")
		second := g.subscribes("second", ">")
		second.Close(nil)
		second = g.connect("second")
		second.Resubscribe()
		g.mustTell(teller, "b")
		g.hears(second, true, "b")
		g.hears(first, true, "a", "b")
	})
}

func TestASlowSubscriberGetsAGap(t *testing.T) {
	withHub(t, hub.Limits{NoticeBytes: 16 << 10}, func(g *testHub) {
		teller, hearer := g.connect("teller"), g.subscribes("hearer", ">")
		for i := range 20 {
			g.mustTell(teller, fmt.Sprint("n.", i))
		}
		heard := g.batches(hearer)
		if len(heard) < 3 || heard[0].Gap == nil {
			t.Fatalf("got %+v, want a gap first", heard)
		}
		if gap := heard[0].Gap; gap.From != 1 || int(gap.To)+len(heard)-1 != 20 {
			t.Errorf("got a gap from %d to %d and %d notices, want 20 in all", gap.From, gap.To, len(heard)-1)
		}
	})
}

func TestPeersThatAnswerEachOtherByTopicsStop(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, b := g.subscribes("a", "from.b"), g.subscribes("b", "from.a")
		g.mustTell(a, "from.a")
		turns := 0
		for ; turns < 50; turns++ {
			who, hears, tells := b, "from.a", "from.b"
			if turns%2 == 1 {
				who, hears, tells = a, "from.b", "from.a"
			}
			g.hears(who, true, hears)
			if _, err := g.tells(who, tells, core.ToHub()); err != nil {
				g.wantFault("in the end", err, core.CodeLoop)
				break
			}
		}
		if turns != policy.DefaultHops {
			t.Errorf("got %d turns, want %d", turns, policy.DefaultHops)
		}
	})
}

func TestTopicsAreCheckedAndBounded(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		s := g.connect("s")
		g.wantFault("no topics", s.Subscribe(nil), core.CodeInvalid)
		g.wantFault("no topic", s.Subscribe([]string{"a..b"}), core.CodeInvalid)
		var many []string
		for i := range 65 {
			many = append(many, fmt.Sprint("t", i))
		}
		g.wantFault("too many", s.Subscribe(many), core.CodeOverloaded)
		if err := s.Subscribe(many[1:]); err != nil {
			t.Errorf("64 topics: got %v, want no error", err)
		}
		s.Close(nil)
		g.wantFault("after the end", s.Subscribe([]string{"a"}), core.CodeUnreachable)
	})
}
