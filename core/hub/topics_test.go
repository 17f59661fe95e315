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

// subscribe connects a subscriber.
func (g *testHub) subscribe(id string, topics ...string) *hub.Session {
	g.t.Helper()
	s := g.connect(id)
	if err := s.Subscribe(topics); err != nil {
		g.t.Fatalf("%s subscribes to %v: got %v, want no error", id, topics, err)
	}
	return s
}

// publish publishes a notice.
func (g *testHub) publish(s *hub.Session, topic string, to core.Address) (*task.Task, error) {
	g.t.Helper()
	return s.Open(core.Request{To: to, Intent: core.IntentNotify, Notice: &core.Notice{Topic: topic}}, hub.OpenOptions{Unwatched: true})
}

func (g *testHub) mustPublish(s *hub.Session, topics ...string) {
	g.t.Helper()
	for _, topic := range topics {
		if _, err := g.publish(s, topic, core.ToHub()); err != nil {
			g.t.Fatalf("publishing %s: got %v, want no error", topic, err)
		}
	}
}

// wantNotices checks what a subscriber receives now. With accepted, its transport accepts it.
func (g *testHub) wantNotices(s *hub.Session, accepted bool, want ...string) {
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
			if accepted {
				s.NoticeDelivered(b.Task, b.Tag)
			}
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		g.t.Errorf("notices: got %v, want %v", got, want)
	}
}

func TestANoticeForTheHubReachesAllSubscribers(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		publisher := g.subscribe("publisher", ">")
		one, rest, other := g.subscribe("one", "hans.*"), g.subscribe("rest", "hans.>", "hans.*"), g.subscribe("other", "kit.>")
		asked, err := g.publish(publisher, "hans.location", core.ToHub())
		if err != nil || asked.State() != task.Ended || asked.Answer().Fault != nil {
			t.Errorf("got %v and the task %v, want it done", err, asked.State())
		}
		g.mustPublish(publisher, "hans.location.gym")
		g.wantNotices(one, true, "hans.location")
		g.wantNotices(rest, true, "hans.location", "hans.location.gym")
		g.wantNotices(other, true)
		g.wantNotices(publisher, true) // not its own notice
	})
}

func TestANoticeForAnAgentReachesSubscribersTooUnlessItIsPrivate(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, subscriber, publisher := g.agent("a", core.FeatureNotices), g.subscribe("subscriber", ">"), g.connect("publisher")
		task, err := g.publish(publisher, "hans.location", core.ToAgent("a"))
		if err != nil {
			t.Fatalf("publishing to an agent: got %v, want no error", err)
		}
		agent.Delivered(task.ID())
		private, err := publisher.Open(core.Request{To: core.ToAgent("a"), Intent: core.IntentNotify, Notice: &core.Notice{Topic: "secret"}}, hub.OpenOptions{Private: true})
		if err != nil {
			t.Fatal(err)
		}
		agent.Delivered(private.ID())
		_, err = g.publish(publisher, "lost", core.ToAgent("nobody"))
		g.wantFault("to an unknown agent", err, core.CodeUnknownAgent)
		g.wantNotices(subscriber, true, "hans.location")
	})
}

func TestTopicsOfTheHubAreRefused(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, publisher := g.agent("a", core.FeatureNotices), g.connect("publisher")
		for _, topic := range []string{"dragoman.context", "dragoman.shutdown", "dragoman."} {
			_, err := g.publish(publisher, topic, core.ToAgent("a"))
			g.wantFault(topic, err, core.CodeInvalid)
		}
		if got := g.batches(agent); len(got) > 0 {
			t.Errorf("the agent: got %+v, want nothing", got)
		}
	})
}

func TestANoticeWithoutSubscribersIsRefused(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		publisher := g.connect("publisher")
		_, err := g.publish(publisher, "hans.location", core.ToHub())
		g.wantFault("without subscribers", err, core.CodeUnreachable)
		subscriber := g.subscribe("subscriber", "hans.*")
		_, err = g.publish(publisher, "kit.location", core.ToHub())
		g.wantFault("of another topic", err, core.CodeUnreachable)
		_, err = g.publish(publisher, "dragoman.shutdown", core.ToHub())
		g.wantFault("of the hub's own", err, core.CodeInvalid)
		if !subscriber.Unsubscribe([]string{"hans.*"}) || subscriber.Unsubscribe(nil) {
			t.Error("unsubscribing twice: want success once")
		}
		_, err = g.publish(publisher, "hans.location", core.ToHub())
		g.wantFault("once it has unsubscribed", err, core.CodeUnreachable)
	})
}

func TestAPrincipalNotifiesOnlyPermittedSubscribers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &testHub{t, coretest.NewHub(t, hub.Options{Authorizer: notAsking(t, "publisher", "foe")})}
		publisher := g.connect("publisher")
		friend, foe := g.standby("friend"), g.standby("foe")
		for _, s := range []*hub.Session{friend, foe} {
			if err := s.Subscribe([]string{"a"}); err != nil {
				t.Fatal(err)
			}
		}
		g.mustPublish(publisher, "a")
		g.wantNotices(friend, true, "a")
		g.wantNotices(foe, true)
	})
}

// bell is an agent of the principal of the same name that takes notices.
func (g *testHub) bell(id string) *hub.Session {
	return g.agentOf(core.Principal{ID: id, Authenticated: true}, id, able|core.FeatureNotices)
}

func TestUnderRulesANoticeReachesWhomItsSenderMayAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := coretest.Rules(t, "ci see,ask open", "owner see,ask,read", "screen see,read", "eve see open", "screen2 read")
		g := &testHub{t, coretest.NewHub(t, hub.Options{Authorizer: rules})}
		open, shut := g.bell("open"), g.bell("shut")
		as := func(id string) *hub.Session { return g.connectAs(core.Principal{ID: id, Authenticated: true}) }
		ci, owner, screen, eve, blind := as("ci"), as("owner"), as("screen"), as("eve"), as("screen2")
		_, err := g.publish(ci, "build.done", core.ToHub())
		g.wantFault("before anybody subscribes", err, core.CodeUnreachable)
		for _, s := range []*hub.Session{open, shut, screen, eve, blind} {
			if err := s.Subscribe([]string{">"}); err != nil {
				t.Fatal(err)
			}
		}
		everybody := []*hub.Session{open, shut, screen, eve, blind}
		check := func(what string, want ...bool) {
			t.Helper()
			for i, s := range everybody {
				var topics []string
				if want[i] {
					topics = []string{"build.done"}
				}
				if g.wantNotices(s, true, topics...); t.Failed() {
					t.Fatalf("%s: see above, at %s", what, s.Identity().Principal.ID)
				}
			}
		}
		g.mustPublish(ci, "build.done")
		check("of ci, to the agent that it may ask and to who reads everything", true, false, true, false, true)
		g.mustPublish(owner, "build.done")
		check("of the owner, to everybody", true, true, true, true, true)
		if _, err := g.publish(owner, "build.done", core.ToAgent("shut")); err != nil {
			t.Fatal(err)
		}
		check("to an agent, to itself and to who sees it", false, true, true, false, false)

		_, err = g.publish(ci, "build.done", core.ToAgent("shut"))
		g.wantFault("to an agent that ci may not see", err, core.CodeUnknownAgent)
		_, err = g.publish(eve, "build.done", core.ToAgent("open"))
		g.wantFault("to an agent that eve may only see", err, core.CodeNotAuthorized)
		for _, s := range []*hub.Session{screen, blind} {
			s.Unsubscribe(nil)
		}
		_, err = g.publish(eve, "build.done", core.ToHub())
		g.wantFault("of eve, who may ask nobody", err, core.CodeUnreachable)
		check("of eve", false, false, false, false, false)
	})
}

func TestAReturningSubscriberGetsMissedAndUncertainNotices(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		publisher, subscriber := g.connect("publisher"), g.subscribe("subscriber", "n.*")
		g.mustPublish(publisher, "n.1")
		g.wantNotices(subscriber, true, "n.1")
		g.sleep(2 * time.Minute)
		g.mustPublish(publisher, "n.2")
		g.wantNotices(subscriber, true, "n.2") // accepted just before the connection was lost
		g.mustPublish(publisher, "n.3")
		g.wantNotices(subscriber, false, "n.3") // delivered, and not accepted
		subscriber.Close(nil)
		g.mustPublish(publisher, "n.4")
		g.connect("stranger").Resubscribe()
		subscriber = g.connect("subscriber")
		subscriber.Resubscribe()
		g.mustPublish(publisher, "n.5")
		g.wantNotices(subscriber, true, "n.2", "n.3", "n.4", "n.5")
		subscriber.Close(nil)
		g.sleep(11 * time.Minute)
		_, err := g.publish(publisher, "n.6", core.ToHub())
		g.wantFault("once it is not waited for any more", err, core.CodeUnreachable)
		subscriber = g.connect("subscriber")
		subscriber.Resubscribe()
		g.wantNotices(subscriber, true)
	})
}

func TestASubscriberThatReturnsBeforeItsOldConnectionEndsGetsEverything(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		publisher, lost := g.connect("publisher"), g.connect("subscriber")
		lost.Resubscribe()
		if err := lost.Subscribe([]string{"n.*"}); err != nil {
			t.Fatal(err)
		}
		g.mustPublish(publisher, "n.1")
		g.wantNotices(lost, true, "n.1") // over a dead connection
		also, back := g.connect("subscriber"), g.connect("subscriber")
		also.Resubscribe()
		back.Resubscribe()
		if err := also.Subscribe([]string{"m"}); err != nil {
			t.Fatal(err)
		}
		g.mustPublish(publisher, "n.2", "m")
		lost.Close(nil)
		g.wantNotices(back, true, "n.1", "n.2")
		g.mustPublish(publisher, "n.3")
		g.wantNotices(back, true, "n.3")
		back.Close(nil) // the other connection takes over
		g.mustPublish(publisher, "n.4")
		g.wantNotices(also, true, "n.1", "n.2", "m", "n.3", "n.4")
		also.Close(nil)
		g.mustPublish(publisher, "m", "n.5")
	})
}

func TestTheSubscriptionsOfTwoConnectionsAreMerged(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		publisher, one, two := g.connect("publisher"), g.subscribe("subscriber", "a"), g.subscribe("subscriber", "b")
		one.Close(nil)
		two.Close(nil)
		g.mustPublish(publisher, "a", "b")
		back := g.connect("subscriber")
		back.Resubscribe()
		g.wantNotices(back, true, "a", "b")
	})
}

func TestANoticeForAnAgentIsRedeliveredIfItMayBeLost(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		publisher := g.connect("publisher")
		agent := g.standby("agent")
		agent.Resubscribe()
		tell := func(topic string) {
			t.Helper()
			if _, err := g.publish(publisher, topic, core.ToAgent("agent")); err != nil {
				t.Fatalf("publishing %s: got %v, want no error", topic, err)
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
		tell("n.3") // its transport does not accept it, so the publisher gets an error
		agent.Close(nil)
		agent = g.standby("agent")
		agent.Resubscribe()
		g.wantNotices(agent, true, "n.2")
		tell("n.4")
		take("n.4")
		g.wantNotices(agent, true)
		g.sleep(2 * time.Minute)
		agent.Close(nil)
		agent = g.standby("agent")
		agent.Resubscribe()
		g.wantNotices(agent, true)
	})
}

func TestNoticesBeforeASubscriptionAreNotDelivered(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		publisher, first := g.connect("publisher"), g.subscribe("first", ">")
		g.mustPublish(publisher, "a")
		second := g.subscribe("second", ">")
		second.Close(nil)
		second = g.connect("second")
		second.Resubscribe()
		g.mustPublish(publisher, "b")
		g.wantNotices(second, true, "b")
		g.wantNotices(first, true, "a", "b")
	})
}

func TestASlowSubscriberGetsAGap(t *testing.T) {
	withHub(t, hub.Limits{NoticeBytes: 16 << 10}, func(g *testHub) {
		publisher, subscriber := g.connect("publisher"), g.subscribe("subscriber", ">")
		for i := range 20 {
			g.mustPublish(publisher, fmt.Sprint("n.", i))
		}
		arrived := g.batches(subscriber)
		if len(arrived) < 3 || arrived[0].Gap == nil {
			t.Fatalf("got %+v, want a gap first", arrived)
		}
		if gap := arrived[0].Gap; gap.From != 1 || int(gap.To)+len(arrived)-1 != 20 {
			t.Errorf("got a gap from %d to %d and %d notices, want 20 in total", gap.From, gap.To, len(arrived)-1)
		}
	})
}

func TestPeersThatAnswerEachOtherByTopicsStop(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, b := g.subscribe("a", "from.b"), g.subscribe("b", "from.a")
		g.mustPublish(a, "from.a")
		turns := 0
		for ; turns < 50; turns++ {
			who, receives, publishes := b, "from.a", "from.b"
			if turns%2 == 1 {
				who, receives, publishes = a, "from.b", "from.a"
			}
			g.wantNotices(who, true, receives)
			if _, err := g.publish(who, publishes, core.ToHub()); err != nil {
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
