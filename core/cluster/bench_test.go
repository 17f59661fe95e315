package cluster_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster"
)

// benchRig is three hubs with 10,000 agents, on the clock of the machine.
func benchRig(b *testing.B) *rig {
	r := rigOf(b, "a", "b", "c")
	b.Cleanup(r.end)
	for _, name := range []string{"a", "b", "c"} {
		r.putMany(r.hubs[name], 3333)
	}
	r.within(20*time.Second, "all hubs know the same agents", func() bool { return r.disagreement() == "" })
	return r
}

// BenchmarkJoinWithTenThousandAgents claims an id, joins and waits until another hub knows the
// agent: two claims of 1 ms and one message of up to 0.2 ms are of the test's network.
func BenchmarkJoinWithTenThousandAgents(b *testing.B) {
	r := benchRig(b)
	seen := make(chan core.AgentID, 1)
	r.hubs["b"].mu.Lock()
	r.hubs["b"].onUp = func(id core.AgentID) { seen <- id }
	r.hubs["b"].mu.Unlock()
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		id := core.AgentID(fmt.Sprintf("late-%d", len(took)))
		if err := r.hubs["a"].join(context.Background(), id, core.Principal{ID: string(id), Authenticated: true}); err != nil {
			b.Fatal(err)
		}
		for got := range seen {
			if got == id {
				break
			}
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)*99/100].Seconds()*1000, "p99-ms")
}

// BenchmarkPut is what the engine pays for telling of an agent that has changed.
func BenchmarkPut(b *testing.B) {
	r := benchRig(b)
	h := r.hubs["a"]
	e := h.own["agent-7"]
	for b.Loop() {
		h.c.Put(e)
	}
}

// BenchmarkSetLoad is what the engine pays for each task.
func BenchmarkSetLoad(b *testing.B) {
	r := benchRig(b)
	h := r.hubs["a"]
	e := h.own["agent-7"]
	for b.Loop() {
		e.Load.Active++
		h.c.SetLoad("agent-7", e.Load)
	}
}

// BenchmarkRest reports the bytes a second that three hubs with 10,000 agents send at rest, each
// counted for each hub that gets it.
func BenchmarkRest(b *testing.B) {
	r := benchRig(b)
	time.Sleep(time.Second)
	before, began := r.net.Bytes(), time.Now()
	for b.Loop() {
		<-time.After(100 * time.Millisecond)
	}
	b.ReportMetric(float64(r.net.Bytes()-before)/time.Since(began).Seconds(), "B/s")
}

// BenchmarkChangingLoads is the same while the load of each agent changes all the time.
func BenchmarkChangingLoads(b *testing.B) {
	r := benchRig(b)
	before, began := r.net.Bytes(), time.Now()
	n := 0
	for b.Loop() {
		for _, h := range r.hubs {
			n++
			id := core.AgentID(fmt.Sprintf("agent-%d", n%3333))
			if h.name != "a" {
				id += core.AgentID("-" + h.name)
			}
			h.c.SetLoad(id, cluster.Load{Active: n})
		}
	}
	b.ReportMetric(float64(r.net.Bytes()-before)/time.Since(began).Seconds(), "B/s")
}

// BenchmarkWhole is a new hub that reads the parts of three others with 10,000 agents.
func BenchmarkWhole(b *testing.B) {
	r := benchRig(b)
	for b.Loop() {
		d := r.start("d")
		r.within(20*time.Second, "it knows all", func() bool { return len(d.knows()) == 9999 })
		d.leave()
	}
}
