package cluster_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
	"github.com/dragoman-hub/dragoman/core/journal"
)

func TestAgentsOfEachHubAreKnownAtAll(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *rig) {
		a, b := r.hubs["a"], r.hubs["b"]
		a.mustJoin("x")
		b.mustJoin("y")
		took := r.within(100*time.Millisecond, "all know both agents", func() bool { return r.disagreement() == "" })
		t.Logf("known after %v", took)
		a.part("x")
		r.within(100*time.Millisecond, "x has left everywhere", func() bool { return r.disagreement() == "" })
	})
}

func TestACardThatChangesIsKnownAtAll(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *rig) {
		a, b := r.hubs["a"], r.hubs["b"]
		a.mustJoin("x")
		r.untilAgreed()
		a.mu.Lock()
		e := a.own["x"]
		e.Card.Capabilities = []string{"math"}
		e.Card.Metadata = map[string]json.RawMessage{"about": json.RawMessage(`"<b> & ü"`)}
		a.own["x"] = e
		a.mu.Unlock()
		a.c.Put(e)
		r.untilAgreed()
		if !b.saw("x at a/1 changed") || b.saw("x at a/1 down") {
			t.Errorf("the events of b: got %q, want that x has changed", b.events())
		}
	})
}

func TestAnAgentThatJoinsAgainWithAnotherConnectionGoesDownAndComesUp(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *rig) {
		a, b := r.hubs["a"], r.hubs["b"]
		a.mustJoin("x")
		r.untilAgreed()
		a.part("x")
		a.mustJoin("x")
		r.untilAgreed()
		if got := strings.Join(b.events(), ", "); !strings.Contains(got, "x at a/1 up, x at a/1 down, x at a/1 up") {
			t.Errorf("the events of b: got %s, want x up, down and up", got)
		}
	})
}

func TestLoadsAreToldTogetherAndOnlyTheLastOfEachAgent(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *rig) {
		a, b := r.hubs["a"], r.hubs["b"]
		a.mustJoin("x")
		r.untilAgreed()
		before := r.net.Bytes()
		for n := range 1000 {
			a.c.SetLoad("x", cluster.Load{Active: n + 1})
		}
		r.within(300*time.Millisecond, "b knows the last load", func() bool { return b.knows()["a/1 x"].Load.Active == 1000 })
		changes := 0
		for _, e := range b.events() {
			if e == "x at a/1 changed" {
				changes++
			}
		}
		if changes > 2 {
			t.Errorf("changes that b was told: got %d, want 1 or 2", changes)
		}
		if sent := r.net.Bytes() - before; sent > 30_000 {
			t.Errorf("bytes sent for 1000 loads of one agent: got %d, want few", sent)
		}
	})
}

func TestLoadsOfManyAgentsAreBoundedAndAllArrive(t *testing.T) {
	tier.Full(t, "it joins 2,000 agents")
	inBubble(t, 3, func(t *testing.T, r *rig) {
		const agents = 2000
		a, b := r.hubs["a"], r.hubs["b"]
		r.putMany(a, agents)
		r.untilAgreed()
		before := r.net.Bytes()
		for id, e := range a.own {
			e.Load = cluster.Load{Active: 1, Queued: 1}
			a.own[id] = e
			a.c.SetLoad(id, e.Load)
		}
		time.Sleep(time.Second)
		if rate := r.net.Bytes() - before; rate > 700_000 { // three hubs get each
			t.Errorf("bytes in a second: got %d, want at most 16 KiB a tenth and hub", rate)
		}
		r.untilAgreed()
		_ = b
	})
}

func TestANewHubLearnsAllAgents(t *testing.T) {
	tier.Full(t, "it joins 3,000 agents")
	inBubble(t, 3, func(t *testing.T, r *rig) {
		r.putMany(r.hubs["a"], 3000)
		r.untilAgreed()
		d := r.start("d")
		took := r.within(2*time.Second, "d knows all", func() bool { return len(d.c.Missing()) == 0 && r.disagreement() == "" })
		t.Logf("3000 agents known after %v", took)
	})
}

func TestANewHubThatAsksWhileAgentsComeAndGoIsRightInTheEnd(t *testing.T) {
	tier.Full(t, "it joins 2,000 agents")
	inBubble(t, 3, func(t *testing.T, r *rig) {
		a := r.hubs["a"]
		r.putMany(a, 2000)
		r.start("d")
		for n := range 200 {
			a.part(core.AgentID(fmt.Sprintf("agent-%d", n*7)))
			a.mustJoin(core.AgentID(fmt.Sprintf("late-%d", n)))
		}
		r.untilAgreed()
	})
}

func TestALoadThatIsLostIsTold(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *rig) {
		a, b := r.hubs["a"], r.hubs["b"]
		a.mustJoin("x")
		r.untilAgreed()
		for _, n := range []int{1, 0} {
			r.net.CutOneWay("a", "b")
			a.c.SetLoad("x", cluster.Load{Active: n})
			time.Sleep(200 * time.Millisecond)
			r.net.Heal()
			r.within(300*time.Millisecond, "b knows the load", func() bool { return b.knows()["a/1 x"].Load.Active == n })
		}
	})
}

// An agent is at one hub at a time for each hub, whatever that hears of the others.
func TestAnAgentThatMovesLeavesOneHubBeforeItIsAtTheOther(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *rig) {
		a, b, c := r.hubs["a"], r.hubs["b"], r.hubs["c"]
		b.mustJoin("x")
		r.untilAgreed()
		r.net.CutOneWay("b", "a")
		b.part("x")
		c.mustJoin("x")
		r.until("a knows it at c", func() bool { return a.saw("x at c/1 up") })
		const want = "x at b/1 down, x at c/1 up"
		if got := strings.Join(a.events(), ", "); !strings.HasSuffix(got, want) {
			t.Errorf("got %s, want that it ends with %s", got, want)
		}
	})
}

func TestTheAgentsOfAHubAreBackWithItIfItWasNotTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		defer r.end()
		r.change = func(s *cluster.Settings) { s.Callbacks.TakeOver = nil }
		for _, name := range []string{"a", "b", "c"} {
			r.start(name)
		}
		a, b := r.hubs["a"], r.hubs["b"]
		r.until("the cluster is formed", b.c.HasQuorum)
		a.mustJoin("x")
		r.untilAgreed()
		r.net.Isolate("a")
		r.until("a is gone", func() bool { return b.saw("a/1 gone") })
		if got := b.c.Missing(); len(got) != 1 || got[0] != "a" {
			t.Errorf("missing: got %q, want a", got)
		}
		r.net.Heal()
		r.untilAgreed()
		if got := strings.Join(b.events(), ", "); !strings.Contains(got, "a/1 gone, a/1 up, x at a/1 up") {
			t.Errorf("the events of b: got %s, want a gone, up, and x with it", got)
		}
	})
}

func TestAnEngineThatIsSlowDelaysNoBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		defer r.end()
		r.change = func(s *cluster.Settings) {
			if s.Life.Hub == "a" {
				up := s.Callbacks.AgentUp
				s.Callbacks.AgentUp = func(of journal.Life, e cluster.Entry) { time.Sleep(500 * time.Millisecond); up(of, e) }
			}
		}
		for _, name := range []string{"a", "b", "c"} {
			r.start(name)
		}
		b := r.hubs["b"]
		r.until("the cluster is formed", b.c.HasQuorum)
		for n := range 20 {
			b.mustJoin(core.AgentID(fmt.Sprintf("agent-%d", n)))
		}
		r.within(20*time.Second, "a knows all in the end", func() bool { return r.disagreement() == "" })
		if b.state("a") != cluster.Up || b.saw("a/1 is suspect") {
			t.Errorf("the events of b: got %q, want that a was never suspected", b.events())
		}
	})
}

func TestAtRestTenThousandAgentsTakeFewBytes(t *testing.T) {
	tier.Full(t, "it joins 10,000 agents")
	inBubble(t, 3, func(t *testing.T, r *rig) {
		for _, h := range r.hubs {
			r.putMany(h, 3333)
		}
		r.within(20*time.Second, "all hubs know the same agents", func() bool { return r.disagreement() == "" })
		before := r.net.Bytes()
		time.Sleep(10 * time.Second)
		if rate := (r.net.Bytes() - before) / 10; rate > 100_000 {
			t.Errorf("bytes a second at rest: got %d, want at most 100 KB", rate)
		} else {
			t.Logf("%d bytes a second at rest, delivered to all", rate)
		}
	})
}

// putMany connects agents that no other hub has.
func (r *rig) putMany(h *testHub, n int) {
	for i := range n {
		id := core.AgentID(fmt.Sprintf("agent-%d", i))
		if h.name != "a" {
			id += core.AgentID("-" + h.name)
		}
		e := cluster.Entry{
			Card: core.Card{
				ID: id, Name: "Agent number " + fmt.Sprint(i), Dialect: "parallax", Capabilities: []string{"code.review", "code.write"},
				Domains: []string{"software.go"}, Features: core.FeatureStreaming | core.FeatureUsage, MaxConcurrent: 2,
			},
			Principal: core.Principal{ID: "team", Authenticated: true}, Connection: uint64(i + 1), Since: time.Now().UTC(),
		}
		h.mu.Lock()
		h.own[id] = e
		h.mu.Unlock()
		h.c.Put(e)
	}
}
