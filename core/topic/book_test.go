package topic_test

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/topic"
)

// peer is a connection.
type peer struct {
	name  string
	id    string // of its principal; "" is p
	wakes atomic.Int64
}

func (p *peer) Wake() { p.wakes.Add(1) }

func (p *peer) Principal() core.Principal {
	return core.Principal{ID: cmp.Or(p.id, "p"), Authenticated: true}
}

// notice is a task with a topic.
type notice struct {
	name string
	done func() bool
}

func (n *notice) IsDone() bool { return n.done() }

// testBook is a book with a publisher, from which every agent except "foe" may receive.
type testBook struct {
	*testing.T
	*topic.Book
	publisher *peer
}

func withBook(t *testing.T, opts topic.Options, test func(*testBook)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if opts.Keep == 0 {
			opts.Keep = 10 * time.Minute
		}
		if opts.Bytes == 0 {
			opts.Bytes = 1 << 20
		}
		opts.MayReceive = func(_ topic.Notice, _ core.Principal, id core.AgentID) bool { return id != "foe" }
		test(&testBook{t, topic.NewBook(opts), &peer{name: "publisher"}})
	})
}

func agent(id string) topic.Identity {
	return topic.Identity{Principal: "p", Agent: core.AgentID(id)}
}

// subscribed returns a connection of an agent that subscribes and resumes.
func (g *testBook) subscribed(id string, patterns ...string) *peer {
	g.Helper()
	p := &peer{name: id}
	g.Resume(p, agent(id))
	if err := g.Subscribe(p, agent(id), patterns); err != nil {
		g.Fatalf("%s subscribes to %v: got %v, want no error", id, patterns, err)
	}
	return p
}

func (g *testBook) resumed(id string) *peer {
	p := &peer{name: id}
	g.Resume(p, agent(id))
	return p
}

// publish publishes a notice of each topic.
func (g *testBook) publish(topics ...string) {
	g.Helper()
	for _, name := range topics {
		if !g.Publish(topic.Notice{Topic: name, By: g.publisher, Size: 1, Task: &notice{name: name}}) {
			g.Errorf("%s: got no subscriber, want one", name)
		}
	}
}

// publishTo publishes a notice that was given to a connection.
func (g *testBook) publishTo(p *peer, name string, done func() bool) {
	g.Publish(topic.Notice{Topic: name, By: g.publisher, To: p, Size: 1, Task: &notice{name, done}})
}

func yes() bool { return true }

// wantNotices checks what a connection receives now; with acks its transport accepts it.
func (g *testBook) wantNotices(p *peer, acks bool, want ...string) {
	g.Helper()
	var got []string
	for d, ok := g.Next(p); ok; d, ok = g.Next(p) {
		if d.Gap != nil {
			got = append(got, fmt.Sprintf("gap %d-%d", d.Gap.From, d.Gap.To))
			continue
		}
		got = append(got, d.Task.(*notice).name)
		if acks {
			g.Ack(p, d.Position)
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		g.Errorf("%s: got %v, want %v", p.name, got, want)
	}
}

func TestANoticeReachesSubscribersThatMayReceiveIt(t *testing.T) {
	withBook(t, topic.Options{}, func(g *testBook) {
		if err := g.Subscribe(g.publisher, agent("publisher"), []string{">"}); err != nil {
			t.Fatal(err)
		}
		one, foe, other := g.subscribed("one", "a.*", "a.>"), g.subscribed("foe", "a.*"), g.subscribed("other", "b")
		g.publish("a.1")
		before := other.wakes.Load()
		if one.wakes.Load() == 0 || before != 0 {
			t.Errorf("woken: got %d and %d, want only the subscriber woken", one.wakes.Load(), before)
		}
		g.wantNotices(one, true, "a.1")
		g.wantNotices(foe, true)
		g.wantNotices(other, true)
		g.wantNotices(g.publisher, true)
		if g.Publish(topic.Notice{Topic: "c", By: g.publisher, Size: 1}) {
			t.Error("a topic that only its publisher subscribes to: got a subscriber, want none")
		}
		if !g.Unsubscribe(one, []string{"a.*"}) || g.Unsubscribe(one, []string{"a.*"}) || !g.Unsubscribe(one, nil) || g.Unsubscribe(one, nil) {
			t.Error("unsubscribing: want each pattern removed once")
		}
		g.Detach(foe)
		if g.Publish(topic.Notice{Topic: "a.1", By: g.publisher, Size: 1}) {
			t.Error("after all have left: got a subscriber, want none")
		}
	})
}

func TestASubscriberReceivesWhatItsNewIdentityMayReceive(t *testing.T) {
	withBook(t, topic.Options{}, func(g *testBook) {
		p := &peer{name: "p"}
		g.Identify(p, agent("unknown"))
		if err := g.Subscribe(p, topic.Identity{Principal: "p"}, []string{"a"}); err != nil {
			t.Fatal(err)
		}
		g.publish("a")
		g.Identify(p, agent("foe"))
		g.wantNotices(p, true)
		g.Identify(p, agent("friend"))
		g.publish("a")
		g.Detach(p)
		g.wantNotices(g.resumed("friend"), true, "a")
	})
}

func TestPatternsAreCheckedAndBounded(t *testing.T) {
	withBook(t, topic.Options{}, func(g *testBook) {
		var many []string
		for i := range 65 {
			many = append(many, fmt.Sprint("t", i))
		}
		for want, patterns := range map[core.Code][]string{core.CodeInvalid: {"a", "a..b"}, core.CodeOverloaded: many} {
			if err := g.Subscribe(g.publisher, agent("x"), patterns); !errors.Is(err, &core.Fault{Code: want}) {
				t.Errorf("%d patterns: got %v, want a fault %s", len(patterns), err, want)
			}
		}
		if err := g.Subscribe(g.publisher, agent("x"), nil); !errors.Is(err, &core.Fault{Code: core.CodeInvalid}) {
			t.Errorf("no patterns: got %v, want a fault invalid", err)
		}
		if g.Unsubscribe(g.publisher, nil) {
			t.Error("got a subscription to remove, want none after refusals")
		}
	})
}

func TestASlowSubscriberGetsAGap(t *testing.T) {
	withBook(t, topic.Options{Bytes: 3}, func(g *testBook) {
		p := g.subscribed("p", "a.*")
		g.publish("a.1", "a.2", "a.3", "a.4", "a.5", "a.6")
		g.wantNotices(p, true, "gap 1-2", "a.3", "a.4", "a.5", "a.6") // the latest notices are kept
		g.publish("a.7")
		time.Sleep(11 * time.Minute)
		g.publish("a.8")
		g.wantNotices(p, true, "gap 7-7", "a.8")
	})
}

func TestANewConnectionContinuesAfterWhatHasArrived(t *testing.T) {
	withBook(t, topic.Options{}, func(g *testBook) {
		p := g.subscribed("p", "a.*")
		g.publish("a.1")
		g.wantNotices(p, true, "a.1")
		time.Sleep(2 * time.Minute)
		g.publish("a.2")
		g.wantNotices(p, true, "a.2")
		g.publish("a.3")
		g.wantNotices(p, false, "a.3")
		g.Detach(p)
		g.publish("a.4")
		q := g.resumed("p")
		if q.wakes.Load() == 0 {
			t.Error("a connection that resumes: got no wake, want one")
		}
		g.wantNotices(q, true, "a.2", "a.3", "a.4")
		time.Sleep(2 * time.Minute)
		g.Detach(q)
		time.Sleep(9 * time.Minute)
		g.publish("a.5")
		time.Sleep(2 * time.Minute)
		q = g.resumed("p")
		g.wantNotices(q, true) // it was away for too long
		if g.Publish(topic.Notice{Topic: "a.6", By: g.publisher, Size: 1}) {
			t.Error("got a subscriber, want its subscription gone")
		}
	})
}

func TestASubscriptionGoesToAConnectionThatHasResumed(t *testing.T) {
	withBook(t, topic.Options{}, func(g *testBook) {
		one, two := g.subscribed("p", "a"), g.subscribed("p", "b")
		g.publish("a", "b")
		d, _ := g.Next(two)
		time.Sleep(2 * time.Minute)
		g.Detach(one)
		g.Ack(two, d.Position) // for its old position: it is redelivered
		g.wantNotices(two, false, "a", "b")
		time.Sleep(2 * time.Minute)
		g.Detach(two)
		g.wantNotices(g.resumed("p"), true, "a", "b")
	})
}

func TestUnacceptedNoticesSurviveAMerge(t *testing.T) {
	withBook(t, topic.Options{}, func(g *testBook) {
		p := g.subscribed("p", "n")
		g.publish("n")
		d, _ := g.Next(p) // its transport never accepts it
		time.Sleep(2 * time.Minute)
		other := g.resumed("p")
		g.publishTo(other, "own", yes)
		g.wantNotices(p, true)
		g.Detach(other)
		g.wantNotices(p, false, "n", "own")
		g.Ack(p, d.Position)
		time.Sleep(2 * time.Minute)
		g.Detach(p)
		g.wantNotices(g.resumed("p"), true, "n", "own")
	})
}

func TestARedeliveryAcceptedInTheSameSecondMayBeLostAgain(t *testing.T) {
	withBook(t, topic.Options{}, func(g *testBook) {
		old := g.subscribed("p", "n")
		g.publish("n")
		g.wantNotices(old, true, "n")
		g.Detach(old)
		one, two := g.resumed("p"), g.resumed("p")
		g.wantNotices(one, true, "n")
		if err := g.Subscribe(two, agent("p"), []string{"m"}); err != nil {
			t.Fatal(err)
		}
		g.publish("m")
		g.wantNotices(two, true, "m")
		g.Detach(one)
		g.wantNotices(two, true, "n", "m")
		g.Detach(two)
		g.wantNotices(g.resumed("p"), true, "n", "m")
	})
}

func TestANoticeIsRedeliveredToItsAddresseeIfItWasDelivered(t *testing.T) {
	withBook(t, topic.Options{}, func(g *testBook) {
		p := g.resumed("p")
		g.publishTo(p, "delivered long ago", yes)
		time.Sleep(2 * time.Minute)
		g.publishTo(p, "delivered", yes)
		g.publishTo(p, "lost", func() bool { return false })
		g.wantNotices(p, true) // it got them as the addressee
		g.Detach(p)
		p = g.resumed("p")
		g.wantNotices(p, true, "delivered")
		g.publishTo(p, "another", yes)
		g.wantNotices(p, true)
		time.Sleep(2 * time.Minute)
		g.Detach(p)
		g.wantNotices(g.resumed("p"), true)

		never := &peer{name: "never resumed"}
		g.Identify(never, agent("q"))
		g.publishTo(never, "unclaimed", yes)
		g.wantNotices(g.resumed("q"), true)
	})
}

func TestAConnectionThatEndsDuringNextGetsNothing(t *testing.T) {
	withBook(t, topic.Options{}, func(g *testBook) {
		p := g.resumed("p")
		var isDone func() bool
		g.publishTo(p, "n", func() bool { return isDone() })
		g.Detach(p)
		p = g.resumed("p")
		calls := 0
		isDone = func() bool { calls++; g.Detach(p); return true }
		g.wantNotices(p, true)
		if calls != 1 {
			t.Errorf("calls of IsDone: got %d, want one", calls)
		}
		isDone = yes
		g.wantNotices(g.resumed("p"), true, "n")
		g.wantNotices(p, true)
	})
}

func TestAConnectionThatHasDetachedLeavesNothing(t *testing.T) {
	withBook(t, topic.Options{}, func(g *testBook) {
		p := g.subscribed("p", "a")
		g.publish("a")
		d, _ := g.Next(p)
		for range 2 {
			g.Detach(p)
		}
		g.Ack(p, d.Position)
		g.Identify(p, agent("q"))
		g.wantNotices(p, true)
		if g.Unsubscribe(p, nil) {
			t.Error("got a subscription to remove, want none")
		}
		g.wantNotices(g.resumed("p"), true, "a")
	})
}

func TestSubscriptionsWithoutAConnectionAreBounded(t *testing.T) {
	withBook(t, topic.Options{}, func(g *testBook) {
		const most = 4096
		for i := range most + 1 {
			g.Detach(g.subscribed(fmt.Sprint("p", i), fmt.Sprint("t.", i)))
			time.Sleep(time.Millisecond)
		}
		for i, want := range map[int]bool{0: false, 1: true, most: true} {
			if got := g.Publish(topic.Notice{Topic: fmt.Sprint("t.", i), By: g.publisher, Size: 1, Task: &notice{}}); got != want {
				t.Errorf("subscription %d: got it kept: %t, want %t", i, got, want)
			}
		}
	})
}

func TestWhoLeavesManySubscriptionsLosesItsOwnAndIsToldSo(t *testing.T) {
	withBook(t, topic.Options{}, func(g *testBook) {
		g.Detach(g.subscribed("quiet", "a.>"))
		leave := func(i int) topic.Identity {
			who := topic.Identity{Principal: "mallory", Agent: core.AgentID(fmt.Sprint(i))}
			p := &peer{name: "mallory", id: "mallory"}
			g.Resume(p, who)
			if err := g.Subscribe(p, who, []string{"a.>"}); err != nil {
				t.Fatal(err)
			}
			g.Detach(p)
			return who
		}
		first := leave(0)
		for i := range 5000 {
			leave(i + 1)
		}
		g.publish("a.1")
		g.wantNotices(g.resumed("quiet"), true, "a.1")
		lost := &peer{name: "the first of mallory", id: "mallory"}
		g.Resume(lost, first)
		if d, ok := g.Next(lost); !ok || d.Gap == nil {
			t.Errorf("who has lost its subscription: got %+v, want a gap", d)
		}
	})
}
