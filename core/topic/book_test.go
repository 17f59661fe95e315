package topic_test

import (
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
	wakes atomic.Int64
}

func (p *peer) Wake() { p.wakes.Add(1) }

// notice is a task that tells of a topic.
type notice struct {
	name string
	done func() bool
}

func (n *notice) IsDone() bool { return n.done() }

// stage is a book, with a publisher who tells everybody but "foe".
type stage struct {
	*testing.T
	*topic.Book
	teller *peer
}

func onStage(t *testing.T, opts topic.Options, test func(*stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if opts.Keep == 0 {
			opts.Keep = 10 * time.Minute
		}
		if opts.Bytes == 0 {
			opts.Bytes = 1 << 20
		}
		opts.MayReceive = func(_ core.Principal, id core.AgentID) bool { return id != "foe" }
		test(&stage{t, topic.NewBook(opts), &peer{name: "teller"}})
	})
}

func agent(id string) topic.Identity {
	return topic.Identity{Principal: "p", Agent: core.AgentID(id)}
}

// subscribed returns a connection of an agent that subscribes and resumes.
func (g *stage) subscribed(id string, patterns ...string) *peer {
	g.Helper()
	p := &peer{name: id}
	g.Resume(p, agent(id))
	if err := g.Subscribe(p, agent(id), patterns); err != nil {
		g.Fatalf("%s subscribes to %v: got %v, want no error", id, patterns, err)
	}
	return p
}

func (g *stage) resumed(id string) *peer {
	p := &peer{name: id}
	g.Resume(p, agent(id))
	return p
}

// tell publishes a notice of each topic.
func (g *stage) tell(topics ...string) {
	g.Helper()
	for _, name := range topics {
		if !g.Publish(topic.Notice{Topic: name, By: g.teller, Size: 1, Task: &notice{name: name}}) {
			g.Errorf("%s: got nobody who hears it, want somebody", name)
		}
	}
}

// tellTo publishes a notice that was given to a connection.
func (g *stage) tellTo(p *peer, name string, done func() bool) {
	g.Publish(topic.Notice{Topic: name, By: g.teller, To: p, Size: 1, Task: &notice{name, done}})
}

func yes() bool { return true }

// hears checks what a connection is given now; with acks its transport accepts it.
func (g *stage) hears(p *peer, acks bool, want ...string) {
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
	onStage(t, topic.Options{}, func(g *stage) {
		if err := g.Subscribe(g.teller, agent("teller"), []string{">"}); err != nil {
			t.Fatal(err)
		}
		one, foe, other := g.subscribed("one", "a.*", "a.>"), g.subscribed("foe", "a.*"), g.subscribed("other", "b")
		g.tell("a.1")
		before := other.wakes.Load()
		if one.wakes.Load() == 0 || before != 0 {
			t.Errorf("woken: got %d and %d, want the one who hears", one.wakes.Load(), before)
		}
		g.hears(one, true, "a.1")
		g.hears(foe, true)
		g.hears(other, true)
		g.hears(g.teller, true)
		if g.Publish(topic.Notice{Topic: "c", By: g.teller, Size: 1}) {
			t.Error("a topic that only its publisher subscribes to: got that somebody hears it, want nobody")
		}
		if !g.Unsubscribe(one, []string{"a.*"}) || g.Unsubscribe(one, []string{"a.*"}) || !g.Unsubscribe(one, nil) || g.Unsubscribe(one, nil) {
			t.Error("unsubscribing: want that it undoes each pattern once")
		}
		g.Detach(foe)
		if g.Publish(topic.Notice{Topic: "a.1", By: g.teller, Size: 1}) {
			t.Error("after all have gone: got that somebody hears it, want nobody")
		}
	})
}

func TestASubscriberWithANewIdentityReceivesWhatThatMayReceive(t *testing.T) {
	onStage(t, topic.Options{}, func(g *stage) {
		p := &peer{name: "p"}
		g.Identify(p, agent("nobody knows it yet"))
		if err := g.Subscribe(p, topic.Identity{Principal: "p"}, []string{"a"}); err != nil {
			t.Fatal(err)
		}
		g.tell("a")
		g.Identify(p, agent("foe"))
		g.hears(p, true)
		g.Identify(p, agent("friend"))
		g.tell("a")
		g.Detach(p)
		g.hears(g.resumed("friend"), true, "a")
	})
}

func TestPatternsAreCheckedAndBounded(t *testing.T) {
	onStage(t, topic.Options{}, func(g *stage) {
		var many []string
		for i := range 65 {
			many = append(many, fmt.Sprint("t", i))
		}
		for want, patterns := range map[core.Code][]string{core.CodeInvalid: {"a", "a..b"}, core.CodeOverloaded: many} {
			if err := g.Subscribe(g.teller, agent("x"), patterns); !errors.Is(err, &core.Fault{Code: want}) {
				t.Errorf("%d patterns: got %v, want a fault %s", len(patterns), err, want)
			}
		}
		if err := g.Subscribe(g.teller, agent("x"), nil); !errors.Is(err, &core.Fault{Code: core.CodeInvalid}) {
			t.Errorf("no patterns: got %v, want a fault invalid", err)
		}
		if g.Unsubscribe(g.teller, nil) {
			t.Error("got something to undo, want that what was refused left nothing")
		}
	})
}

func TestASlowSubscriberGetsAGap(t *testing.T) {
	onStage(t, topic.Options{Bytes: 3}, func(g *stage) {
		p := g.subscribed("p", "a.*")
		g.tell("a.1", "a.2", "a.3", "a.4", "a.5", "a.6")
		g.hears(p, true, "gap 1-2", "a.3", "a.4", "a.5", "a.6") // what was published last is always there
		g.tell("a.7")
		time.Sleep(11 * time.Minute)
		g.tell("a.8")
		g.hears(p, true, "gap 7-7", "a.8")
	})
}

func TestANewConnectionContinuesAfterWhatHasArrived(t *testing.T) {
	onStage(t, topic.Options{}, func(g *stage) {
		p := g.subscribed("p", "a.*")
		g.tell("a.1")
		g.hears(p, true, "a.1")
		time.Sleep(2 * time.Minute)
		g.tell("a.2")
		g.hears(p, true, "a.2")
		g.tell("a.3")
		g.hears(p, false, "a.3")
		g.Detach(p)
		g.tell("a.4")
		q := g.resumed("p")
		if q.wakes.Load() == 0 {
			t.Error("who resumes: got it not woken, want it told that there is something")
		}
		g.hears(q, true, "a.2", "a.3", "a.4")
		time.Sleep(2 * time.Minute)
		g.Detach(q)
		time.Sleep(9 * time.Minute)
		g.tell("a.5")
		time.Sleep(2 * time.Minute)
		q = g.resumed("p")
		g.hears(q, true) // it was away for too long
		if g.Publish(topic.Notice{Topic: "a.6", By: g.teller, Size: 1}) {
			t.Error("got that somebody hears it, want that its subscription is gone")
		}
	})
}

func TestASubscriptionGoesToAConnectionThatHasResumed(t *testing.T) {
	onStage(t, topic.Options{}, func(g *stage) {
		one, two := g.subscribed("p", "a"), g.subscribed("p", "b")
		g.tell("a", "b")
		d, _ := g.Next(two)
		time.Sleep(2 * time.Minute)
		g.Detach(one)
		g.Ack(two, d.Position) // of its old place: it comes again
		g.hears(two, false, "a", "b")
		time.Sleep(2 * time.Minute)
		g.Detach(two)
		g.hears(g.resumed("p"), true, "a", "b")
	})
}

func TestUnacceptedNoticesSurviveAMerge(t *testing.T) {
	onStage(t, topic.Options{}, func(g *stage) {
		p := g.subscribed("p", "n")
		g.tell("n")
		d, _ := g.Next(p) // its transport never accepts it
		time.Sleep(2 * time.Minute)
		other := g.resumed("p")
		g.tellTo(other, "own", yes)
		g.hears(p, true)
		g.Detach(other)
		g.hears(p, false, "n", "own")
		g.Ack(p, d.Position)
		time.Sleep(2 * time.Minute)
		g.Detach(p)
		g.hears(g.resumed("p"), true, "n", "own")
	})
}

func TestARedeliveryAcceptedInTheSameSecondMayBeLostAgain(t *testing.T) {
	onStage(t, topic.Options{}, func(g *stage) {
		old := g.subscribed("p", "n")
		g.tell("n")
		g.hears(old, true, "n")
		g.Detach(old)
		one, two := g.resumed("p"), g.resumed("p")
		g.hears(one, true, "n")
		if err := g.Subscribe(two, agent("p"), []string{"m"}); err != nil {
			t.Fatal(err)
		}
		g.tell("m")
		g.hears(two, true, "m")
		g.Detach(one)
		g.hears(two, true, "n", "m")
		g.Detach(two)
		g.hears(g.resumed("p"), true, "n", "m")
	})
}

func TestANoticeIsRedeliveredToItsAddresseeIfItWasDelivered(t *testing.T) {
	onStage(t, topic.Options{}, func(g *stage) {
		p := g.resumed("p")
		g.tellTo(p, "delivered long ago", yes)
		time.Sleep(2 * time.Minute)
		g.tellTo(p, "delivered", yes)
		g.tellTo(p, "lost", func() bool { return false })
		g.hears(p, true) // it has them as the one addressed
		g.Detach(p)
		p = g.resumed("p")
		g.hears(p, true, "delivered")
		g.tellTo(p, "another", yes)
		g.hears(p, true)
		time.Sleep(2 * time.Minute)
		g.Detach(p)
		g.hears(g.resumed("p"), true)

		never := &peer{name: "never resumed"}
		g.Identify(never, agent("q"))
		g.tellTo(never, "nobody comes back for it", yes)
		g.hears(g.resumed("q"), true)
	})
}

func TestAConnectionThatEndsDuringNextGetsNothing(t *testing.T) {
	onStage(t, topic.Options{}, func(g *stage) {
		p := g.resumed("p")
		var look func() bool
		g.tellTo(p, "n", func() bool { return look() })
		g.Detach(p)
		p = g.resumed("p")
		looks := 0
		look = func() bool { looks++; g.Detach(p); return true }
		g.hears(p, true)
		if looks != 1 {
			t.Errorf("looks: got %d, want one", looks)
		}
		look = yes
		g.hears(g.resumed("p"), true, "n")
		g.hears(p, true)
	})
}

func TestAConnectionThatHasDetachedLeavesNothing(t *testing.T) {
	onStage(t, topic.Options{}, func(g *stage) {
		p := g.subscribed("p", "a")
		g.tell("a")
		d, _ := g.Next(p)
		for range 2 {
			g.Detach(p)
		}
		g.Ack(p, d.Position)
		g.Identify(p, agent("q"))
		g.hears(p, true)
		if g.Unsubscribe(p, nil) {
			t.Error("got something to undo, want nothing")
		}
		g.hears(g.resumed("p"), true, "a")
	})
}

func TestSubscriptionsWithoutAConnectionAreBounded(t *testing.T) {
	onStage(t, topic.Options{}, func(g *stage) {
		const most = 4096
		for i := range most + 1 {
			g.Detach(g.subscribed(fmt.Sprint("p", i), fmt.Sprint("t.", i)))
			time.Sleep(time.Millisecond)
		}
		for i, want := range map[int]bool{0: false, 1: true, most: true} {
			if got := g.Publish(topic.Notice{Topic: fmt.Sprint("t.", i), By: g.teller, Size: 1, Task: &notice{}}); got != want {
				t.Errorf("number %d is awaited: got %t, want %t", i, got, want)
			}
		}
	})
}
