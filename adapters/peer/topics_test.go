package peer_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// subscribing connects somebody who subscribes to topics.
func subscribing(t testing.TB, s *hub.Session, topics ...string) *hub.Session {
	t.Helper()
	if err := s.Subscribe(topics); err != nil {
		t.Fatal(err)
	}
	return s
}

// publish publishes a notice and returns its task.
func publish(t testing.TB, s *hub.Session, to core.Address, topic string) *task.Task {
	t.Helper()
	one, err := s.Open(core.Request{Intent: core.IntentNotify, To: to, Notice: &core.Notice{Topic: topic}}, hub.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return one
}

// noticed reads the topics of the notices that a subscriber gets, until it has so many; a gap counts as
// one.
func noticed(t testing.TB, s *hub.Session, n int) (topics []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for len(topics) < n {
		b, err := s.Next(ctx)
		if err != nil {
			t.Fatalf("after %v: %v, want %d notices", topics, err, n)
		}
		switch {
		case b.Role != task.Subscriber:
		case b.Gap != nil:
			topics = append(topics, "gap")
		default:
			topics = append(topics, b.Task.Request().Notice.Topic)
			s.NoticeDelivered(b.Task, b.Tag)
		}
	}
	return topics
}

// nothingElse checks that a subscriber gets nothing more.
func nothingElse(t testing.TB, who string, s *hub.Session) {
	t.Helper()
	s.Close(nil)
	for {
		b, err := s.Next(t.Context())
		if err != nil {
			return
		}
		if b.Role == task.Subscriber {
			t.Errorf("%s got one more notice: %+v", who, b)
		}
	}
}

func TestANoticeReachesTheSubscribersOfEveryHubOnce(t *testing.T) {
	all := connected(t, "a", "b", "c")
	subscribers := map[string]*hub.Session{}
	for name, n := range all {
		subscribers[name] = subscribing(t, n.person("ann"), "family.*")
	}
	bob := all["b"].join(t, all, core.Card{ID: "bob", Features: core.FeatureNotices})
	eve := subscribing(t, all["a"].person("eve"), "family.*")
	if got := until(t, eve, publish(t, eve, core.ToHub(), "family.one").ID(), core.KindDone); got == "" {
		t.Error("the notice has no end")
	}
	two := publish(t, eve, core.ToAgent("bob"), "family.two")
	held := assigned(t, bob)
	if held.ID() != two.ID() {
		t.Errorf("bob got %s, want the notice", held.ID())
	}
	for name, s := range subscribers {
		got := noticed(t, s, 2)
		slices.Sort(got)
		if !slices.Equal(got, []string{"family.one", "family.two"}) {
			t.Errorf("the subscriber at %s got %v, want both notices", name, got)
		}
		nothingElse(t, "the subscriber at "+name, s)
	}
	nothingElse(t, "the publisher", eve)
}

func TestANoticeIsRefusedOnlyIfNoHubHasASubscriber(t *testing.T) {
	all := connected(t, "a", "b", "c")
	ann := all["a"].person("ann")
	none := publish(t, ann, core.ToHub(), "family.one")
	until(t, ann, none.ID(), core.KindFailed)
	if f := none.Last().Body.(core.Failed).Fault; f.Code != core.CodeUnreachable {
		t.Errorf("nobody subscribes: got %v, want unreachable", f)
	}
	bob := subscribing(t, all["c"].person("bob"), "family.*")
	until(t, ann, publish(t, ann, core.ToHub(), "family.two").ID(), core.KindDone)
	if got := noticed(t, bob, 1); got[0] != "family.two" {
		t.Errorf("got %v, want the second notice", got)
	}
	nothingElse(t, "the subscriber", bob)
}

// A subscriber leaves b and resumes at c: it gets what b has kept, and each notice once.
func TestASubscriptionIsResumedAtAnotherHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob := subscribing(t, w.hubs["b"].Connect(hub.Identity{Principal: core.Principal{ID: "bob"}, Dialect: "test"}), "family.*")
		bob.Resubscribe()
		ann := w.person("a")
		done := func(topic string) {
			t.Helper()
			until(t, ann, publish(t, ann, core.ToHub(), topic).ID(), core.KindDone)
			time.Sleep(time.Second)
		}
		done("family.read")
		if got := noticed(t, bob, 1); got[0] != "family.read" {
			t.Errorf("got %v, want the first notice", got)
		}
		time.Sleep(2 * time.Minute) // what was read has certainly arrived
		bob.Close(nil)
		done("family.away")
		again := w.hubs["c"].Connect(hub.Identity{Principal: core.Principal{ID: "bob"}, Dialect: "test"})
		again.Resubscribe()
		if err := again.Subscribe([]string{"family.*"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // what was kept is on its way
		done("family.back")
		if got := noticed(t, again, 2); !slices.Equal(got, []string{"family.away", "family.back"}) {
			t.Errorf("at another hub: got %v, want what was kept, and what came then", got)
		}
		nothingElse(t, "the subscriber", again)
	})
}

func TestASubscriptionOutlivesItsHubWithAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		subscribing(t, w.hubs["b"].Connect(hub.Identity{Principal: core.Principal{ID: "bob"}, Dialect: "test"}), "family.*")
		time.Sleep(time.Second)
		w.net.Kill("b")
		time.Sleep(5 * time.Second)
		again := w.hubs["c"].Connect(hub.Identity{Principal: core.Principal{ID: "bob"}, Dialect: "test"})
		again.Resubscribe()
		ann := w.person("a")
		until(t, ann, publish(t, ann, core.ToHub(), "family.one").ID(), core.KindDone)
		if got := noticed(t, again, 2); !slices.Equal(got, []string{"gap", "family.one"}) {
			t.Errorf("got %v, want a gap and what comes then", got)
		}
		nothingElse(t, "the subscriber", again)
	})
}
