package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
)

var (
	kills    = flag.Int("kills", ordinaryKills, "how many hubs the test of a cluster kills")
	killSeed = flag.Uint64("kills.seed", 0, "which hubs, and how; 0 for another one each time")
)

// killTimes are what others saw of a hub that was killed, from the kill on. A zero time was not
// measured.
type killTimes struct {
	known, fenced time.Duration // by all other hubs
	ended         time.Duration // a reader at each other hub has the end of a task of the hub
	resumed       time.Duration // who read another task at the hub goes on elsewhere
}

// killsOfCluster is how often hubs of one cluster are killed before its tasks are compared with what
// clients were told.
const killsOfCluster = 25

// Hubs are killed, and stand still, while agents and clients of every dialect work. Every task gets
// one end, which is the same at every hub, and what a client was told. The hubs of the first cluster have NATS
// embedded, those of the second one meet at three servers of NATS, and so on.
func TestHubsAreKilledUnderLoad(t *testing.T) {
	tier.Full(t, "it kills hubs for minutes")
	t.Parallel()
	seed := *killSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("the seed is %d (-kills.seed)", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var all []killTimes
	for len(all) < *kills && !t.Failed() {
		more, hubs := min(killsOfCluster, *kills-len(all)), startCluster
		if len(all)/killsOfCluster%2 == 1 {
			hubs = func(t testing.TB, n int, _ ...string) hubCluster { return startHubsOn(t, startNATS(t, 3), n) }
		}
		t.Run(fmt.Sprintf("kills %d to %d", len(all)+1, len(all)+more), func(t *testing.T) {
			all = append(all, killUnderLoad(t, hubs(t, 3), random, more)...)
		})
	}
	for _, of := range []struct {
		what string
		time func(killTimes) time.Duration
	}{
		{"known", func(k killTimes) time.Duration { return k.known }},
		{"fenced", func(k killTimes) time.Duration { return k.fenced }},
		{"ends", func(k killTimes) time.Duration { return k.ended }},
		{"resumed", func(k killTimes) time.Duration { return k.resumed }},
	} {
		var took []time.Duration
		for _, k := range all {
			if d := of.time(k); d > 0 {
				took = append(took, d)
			}
		}
		if len(took) > 0 {
			t.Logf("%s: p50 %v, p99 %v, of %d", of.what, percentile(took, 0.5).Round(time.Millisecond), percentile(took, 0.99).Round(time.Millisecond), len(took))
		}
	}
}

// killUnderLoad kills hubs of a new cluster n times, lets others stand still before, and compares what clients were told.
func killUnderLoad(t *testing.T, hubs hubCluster, random *rand.Rand, n int) (all []killTimes) {
	load := startLoad(hubs)
	t.Cleanup(func() { load.stop() })
	hubs.untilAgents(t)
	for i := range n {
		if random.IntN(5) == 0 {
			hubs.standsBriefly(t, hubs[random.IntN(len(hubs))], 700*time.Millisecond+time.Duration(random.Int64N(int64(1800*time.Millisecond))))
		}
		victim, how := hubs[random.IntN(len(hubs))], os.Kill
		if random.IntN(5) == 0 {
			how = pause
		}
		time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond) // where in its work the hub is hit
		times := hubs.strike(t, victim, how)
		t.Logf("%d: %v of %s: known %v, fenced %v, ends %v, resumed %v", i+1, how, victim.name, times.known, times.fenced, times.ended, times.resumed)
		all = append(all, times)
		hubs.untilAllUp()
		hubs.untilAgents(t)
		if t.Failed() {
			return all
		}
	}
	load.untilDialects(t, 8)
	load.settle(t)
	return all
}

// untilAgents waits until every hub knows the agent of each hub that is for probes.
func (c hubCluster) untilAgents(t *testing.T) {
	t.Helper()
	for _, at := range c {
		for _, of := range c {
			at.until("hub "+at.name+" knows the agent of "+of.name, func() error {
				var agent struct{ ID string }
				return at.Get(t.Context(), "/v1/agents/probe-"+of.name, &agent)
			})
		}
	}
}

// strike stops or kills a hub that has a task with readers elsewhere, measures what they see, and
// brings the hub back.
func (c hubCluster) strike(t *testing.T, victim *clusterHub, how os.Signal) (took killTimes) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	others := slices.DeleteFunc(slices.Clone(c), func(h *clusterHub) bool { return h == victim })
	at := time.Time{} // of the strike
	var mu sync.Mutex
	struck := func() (ok bool, when time.Time) {
		mu.Lock()
		defer mu.Unlock()
		return !at.IsZero(), at
	}
	note := func(d *time.Duration) {
		if ok, when := struck(); ok {
			mu.Lock()
			defer mu.Unlock()
			*d = max(*d, time.Since(when))
		}
	}
	var reading sync.WaitGroup

	// A task of the hub, which was opened at another one and is read at a third.
	first := make(chan string, 1)
	opener := &clusterReader{}
	var ends [2]string
	reading.Go(func() {
		opener.openAndRead(ctx, others[0], "probe-"+victim.name, first)
		note(&took.ended)
		ends[0] = opener.end
	})
	task := wait(ctx, t, first)
	reader := &clusterReader{task: core.TaskID(task)}
	begun := make(chan string, 1)
	reader.each = sync.OnceFunc(func() { begun <- "" })
	reading.Go(func() {
		_ = reader.readToEnd(ctx, others[1])
		note(&took.ended)
		ends[1] = reader.end
	})
	wait(ctx, t, begun)

	// A task of another hub, which is read at the one that is struck.
	second := make(chan string, 1)
	elsewhere := &clusterReader{}
	other, stopOther := context.WithCancel(ctx)
	reading.Go(func() { elsewhere.openAndRead(other, others[0], "probe-"+others[0].name, second) })
	moving := core.TaskID(wait(ctx, t, second))
	moves := &clusterReader{task: moving}
	following, resumed := make(chan string, 1), make(chan string, 1)
	begin, resume := sync.OnceFunc(func() { following <- "" }), sync.OnceFunc(func() { note(&took.resumed); resumed <- "" })
	moves.each = func() { begin() }
	reading.Go(func() {
		for {
			_ = moves.read(other, victim)
			if ok, _ := struck(); ok || other.Err() != nil {
				break
			}
			pauseFor(other, betweenTries) // the hub stood still before, on a busy machine
		}
		moves.each = resume
		_ = moves.readToEnd(other, others[1])
	})
	wait(ctx, t, following)

	mu.Lock()
	at = time.Now()
	mu.Unlock()
	victim.signal(how)
	for _, h := range others {
		h.untilHubs(h.name+" knows that "+victim.name+" is gone", func(hubs []cluster.Hub) bool { return stateOf(hubs, victim.name).State == cluster.Gone })
	}
	note(&took.known)
	for _, h := range others {
		h.untilHubs(h.name+" knows who has taken "+victim.name+" over", func(hubs []cluster.Hub) bool { return stateOf(hubs, victim.name).TakenBy != nil })
	}
	note(&took.fenced)
	if how == os.Kill {
		wait(ctx, t, resumed)
	}
	if _, err := others[0].Cancel(ctx, moving, ""); err != nil {
		t.Error(err)
	}
	stopOther()
	reading.Wait()
	if ends[0] == "" || ends[0] != ends[1] || !strings.Contains(ends[0], `"unreachable"`) {
		t.Errorf("task %s of %s: got the ends %q at two hubs, want one, that it is unreachable", task, victim.name, ends)
	}
	if how == os.Kill {
		victim.kill()
		victim.start()
	} else {
		victim.cont()
	}
	return took
}

// standsBriefly stops a hub that has a task, for less than the time after which it counts as lost: its task goes on.
func (c hubCluster) standsBriefly(t *testing.T, victim *clusterHub, pauseTime time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	asker := c[0]
	if asker == victim {
		asker = c[1]
	}
	life := func() (epoch uint64) {
		asker.untilHubs(asker.name+" hears "+victim.name, func(hubs []cluster.Hub) bool {
			epoch = stateOf(hubs, victim.name).Epoch
			return stateOf(hubs, victim.name).State == cluster.Up
		})
		return epoch
	}
	var reading sync.WaitGroup
	defer reading.Wait()
	first, reader := make(chan string, 1), &clusterReader{}
	reading.Go(func() { reader.openAndRead(ctx, asker, "probe-"+victim.name, first) })
	task, before := wait(ctx, t, first), life()
	victim.signal(pause)
	time.Sleep(pauseTime)
	victim.cont()
	if after := life(); after != before {
		t.Errorf("hub %s stood still for %v: got its life %d, want %d as before", victim.name, pauseTime, after, before)
	}
	if _, err := asker.Cancel(ctx, core.TaskID(task), ""); err != nil {
		t.Error(err)
	}
	reading.Wait()
	if !strings.Contains(reader.end, `"cancelled"`) {
		t.Errorf("task %s of hub %s, which stood still for %v: got the end %s, want that it was cancelled afterwards", task, victim.name, pauseTime, reader.end)
	}
	t.Logf("%s stood still for %v", victim.name, pauseTime)
}

// openAndRead opens a long task of an agent at a hub and reads it there, to its end. It tells the task once
// that speaks: it was opened, assigned, and has at least one word, with which those behind it may have been
// merged. A hub that stood still on a busy machine refuses it for a while, or ends it before that: then
// another one is opened.
func (r *clusterReader) openAndRead(ctx context.Context, h *clusterHub, agent string, speaks chan<- string) {
	spoke := false
	each := func() {
		if r.last >= 3 && !spoke {
			spoke = true
			speaks <- string(r.task)
		}
	}
	for !spoke && ctx.Err() == nil {
		*r = clusterReader{each: each}
		if _ = r.open(ctx, h, map[string]string{"to": agent, "content": "long"}); r.task != "" && r.end == "" {
			_ = r.readToEnd(ctx, h)
		}
		if !spoke {
			pauseFor(ctx, betweenTries)
		}
	}
}

func stateOf(hubs []cluster.Hub, name string) cluster.Hub {
	for _, h := range hubs {
		if h.Name == name {
			return h
		}
	}
	return cluster.Hub{}
}

// wait waits for a value.
func wait(ctx context.Context, t *testing.T, c <-chan string) string {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-ctx.Done():
		t.Fatal(fmt.Errorf("waiting: %w", context.Cause(ctx)))
		return ""
	}
}
