package topic_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/topic"
)

// lossyConnection is a connection of a subscriber. Its transport accepts everything, except
// while it is stuck; what it accepted within the last minute is lost with it.
type lossyConnection struct {
	*peer
	stuck    bool
	received []topic.Delivery
	accepted map[string]time.Time
}

// step is one event: to the connection with index n modulo their number, or n seconds pass.
type step struct {
	what string
	n    int
}

func TestEveryNoticeArrivesAlthoughConnectionsAreLost(t *testing.T) {
	steps := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) step {
		return step{
			rapid.SampledFrom([]string{"publish", "publish to it", "sleep", "connect", "lose", "lose", "stick"}).Draw(rt, "what"),
			rapid.IntRange(1, 90).Draw(rt, "n"),
		}
	}), 1, 40)
	rapid.Check(t, func(rt *rapid.T) {
		todo := steps.Draw(rt, "steps")
		var lost []string
		withBook(t, topic.Options{Keep: 24 * time.Hour}, func(g *testBook) { lost = play(g, todo) })
		if len(lost) > 0 {
			rt.Errorf("lost: got %v, want each notice redelivered until it has arrived", lost)
		}
	})
}

// play returns the notices that neither certainly arrived nor reached the last connection.
func play(g *testBook, steps []step) (lost []string) {
	var connected []*lossyConnection
	var published []string
	arrived := map[string]bool{}
	read := func() {
		for _, c := range connected {
			for d, ok := g.Next(c.peer); ok; d, ok = g.Next(c.peer) {
				c.received = append(c.received, d)
			}
			for ; len(c.received) > 0 && !c.stuck; c.received = c.received[1:] {
				g.Ack(c.peer, c.received[0].Position)
				c.accepted[c.received[0].Task.(*notice).name] = time.Now()
			}
		}
	}
	connect := func() {
		connected = append(connected, &lossyConnection{peer: g.resumed("p"), accepted: map[string]time.Time{}})
	}
	lose := func(i int) {
		c := connected[i]
		connected = append(connected[:i:i], connected[i+1:]...)
		g.Detach(c.peer)
		for name, at := range c.accepted {
			arrived[name] = arrived[name] || time.Since(at) >= time.Minute
		}
	}
	connect()
	if err := g.Subscribe(connected[0].peer, agent("p"), []string{"n.*"}); err != nil {
		g.Fatal(err)
	}
	for _, s := range steps {
		switch i := s.n % max(1, len(connected)); {
		case s.what == "publish":
			published = append(published, fmt.Sprint("n.", len(published)))
			g.publish(published[len(published)-1])
		case s.what == "sleep":
			time.Sleep(time.Duration(s.n) * time.Second)
		case s.what == "connect" && len(connected) < 3:
			connect()
		case len(connected) == 0:
		case s.what == "publish to it":
			published = append(published, fmt.Sprint("own.", len(published)))
			connected[i].accepted[published[len(published)-1]] = time.Now()
			g.publishTo(connected[i].peer, published[len(published)-1], yes)
		case s.what == "lose":
			lose(i)
		case s.what == "stick":
			connected[i].stuck = !connected[i].stuck
		}
		read()
	}
	for len(connected) > 0 {
		lose(0)
		read()
	}
	connect()
	read()
	for _, name := range published {
		if _, accepted := connected[0].accepted[name]; !accepted && !arrived[name] {
			lost = append(lost, name)
		}
	}
	g.Detach(connected[0].peer)
	return lost
}

// TestConnectionsThatComeAndGoDuringPublishingLoseNothing is for the race detector: many
// connections of one subscriber take turns while notices are published.
func TestConnectionsThatComeAndGoDuringPublishingLoseNothing(t *testing.T) {
	b := topic.NewBook(topic.Options{Keep: time.Hour, Bytes: 1 << 20, MayReceive: func(topic.Notice, core.Principal, core.AgentID) bool { return true }})
	var mu sync.Mutex
	received := map[string]bool{}
	read := func(p *peer) {
		for d, ok := b.Next(p); ok; d, ok = b.Next(p) {
			b.Ack(p, d.Position)
			mu.Lock()
			received[d.Task.(*notice).name] = true
			mu.Unlock()
		}
	}
	who := agent("p")
	first := &peer{name: "first"}
	b.Resume(first, who)
	if err := b.Subscribe(first, who, []string{"n.*"}); err != nil {
		t.Fatal(err)
	}
	const publishers, each = 4, 200
	var group sync.WaitGroup
	for i := range publishers {
		group.Go(func() {
			for k := range each {
				name := fmt.Sprintf("n.%d-%d", i, k)
				if !b.Publish(topic.Notice{Topic: name, Size: 1, Task: &notice{name, yes}}) {
					t.Errorf("%s: got no subscriber, want one", name)
				}
			}
		})
	}
	for range 4 {
		group.Go(func() {
			for range 100 {
				p := &peer{name: "p"}
				b.Resume(p, who)
				read(p)
				b.Identify(p, who)
				_ = b.Subscribe(p, who, []string{"n.>"})
				read(p)
				b.Detach(p)
			}
		})
	}
	group.Go(func() { read(first); b.Detach(first) })
	group.Wait()
	last := &peer{name: "last"}
	b.Resume(last, who)
	read(last)
	if len(received) != publishers*each {
		t.Errorf("received: got %d notices, want %d", len(received), publishers*each)
	}
}
