package peer_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core/coretest/tier"
)

// The flags of the simulation. See make simulate.
var (
	simSchedules = flag.Uint64("sim.schedules", ordinarySchedules, "how many schedules to run")
	simSeed      = flag.Uint64("sim.seed", 0, "the first seed; with one schedule its whole log is shown")
	simReplays   = flag.Uint64("sim.replays", replays, "how many schedules to run twice")
	simViolated  = flag.Int("sim.violations", 5, "stop after so many schedules that break a promise")
	simTime      = flag.Duration("sim.time", 0, "start no more schedules after this time; 0 is without a limit")
	simWorker    = flag.String("sim.worker", "", "FIRST,STEP,N: run these seeds in this process, and write what comes of each")
)

// defaultSeed is the first seed if none is given.
const defaultSeed = 1

// outcome is what came of a schedule, or of several.
type outcome struct {
	Seed   uint64
	Broken []string `json:",omitempty"`
	Log    string   `json:",omitempty"`
	Count  counts
}

// TestSimulate runs schedules, each from a seed of its own, in as many processes as there are
// cores: see [sim].
func TestSimulate(t *testing.T) {
	first := max(*simSeed, defaultSeed)
	switch {
	case *simWorker != "":
		serve(t)
	case *simSeed != 0 && *simSchedules <= 1:
		s := simulate(t, first)
		t.Logf("seed %d:\n%s%+v", first, s.log, s.count)
		for _, b := range s.broken {
			t.Error(b)
		}
	default:
		simulateAll(t, first, tier.Pick(min(*simSchedules, 10), *simSchedules))
	}
}

// serve runs the seeds of one process.
func serve(t *testing.T) {
	var first, step, n uint64
	if _, err := fmt.Sscanf(*simWorker, "%d,%d,%d", &first, &step, &n); err != nil {
		t.Fatal(err)
	}
	debug.SetGCPercent(1600) // the heap is small
	out := json.NewEncoder(os.Stdout)
	for i := range n {
		s := simulate(t, first+i*step)
		o := outcome{Seed: s.seed, Broken: s.broken, Count: s.count}
		if len(s.broken) > 0 {
			o.Log = string(s.log)
		}
		_ = out.Encode(o) // nobody listens any more if it fails
	}
}

// simulateAll shares the schedules among processes.
func simulateAll(t *testing.T, first, n uint64) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	processes := min(uint64(runtime.GOMAXPROCS(0)), n)
	outcomes := make(chan outcome, 100)
	var all sync.WaitGroup
	for i := range processes {
		share := (n - i + processes - 1) / processes
		all.Go(func() { runWorker(ctx, t, first+i, processes, share, outcomes) })
	}
	go func() {
		all.Wait()
		close(outcomes)
	}()
	report(t, n, outcomes, cancel)
}

// runWorker runs a process, and passes on what it writes. That it dies breaks a promise of the
// schedule it was at.
func runWorker(ctx context.Context, t *testing.T, first, step, n uint64, outcomes chan<- outcome) {
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestSimulate$", "-test.timeout=0", fmt.Sprintf("-sim.worker=%d,%d,%d", first, step, n))
	// Goroutines are many and short: a tenth of the time went to growing their stacks.
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GODEBUG=adaptivestackstart=1")
	var said strings.Builder
	cmd.Stderr = &said
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		return
	}
	next := first
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var o outcome
		if json.Unmarshal(lines.Bytes(), &o) != nil {
			fmt.Fprintln(&said, lines.Text())
			continue
		}
		next = o.Seed + step
		outcomes <- o
	}
	if err := cmd.Wait(); err != nil && ctx.Err() == nil {
		outcomes <- outcome{Seed: next, Broken: []string{fmt.Sprintf("its process has ended: %v", err)}, Log: said.String()}
	}
}

// report tells the progress now and then, and each schedule that broke a promise.
func report(t *testing.T, n uint64, outcomes <-chan outcome, stop func()) {
	var total counts
	began, done, violated := time.Now(), uint64(0), 0
	every := time.NewTicker(10 * time.Second)
	defer every.Stop()
	var over <-chan time.Time
	if *simTime > 0 {
		over = time.After(*simTime)
	}
	for {
		select {
		case <-over:
			stop()
		case <-every.C:
			t.Logf("%d of %d schedules, %.1f a second", done, n, float64(done)/time.Since(began).Seconds())
		case o, more := <-outcomes:
			if !more {
				t.Logf("%d schedules in %s: %+v", done, time.Since(began).Round(time.Millisecond), total)
				return
			}
			done++
			total.add(o.Count)
			if len(o.Broken) == 0 || violated >= *simViolated {
				continue
			}
			t.Errorf("seed %d (make simulate SEED=%d SCHEDULES=1 shows all of it):\n  %s\n%s", o.Seed, o.Seed, strings.Join(o.Broken, "\n  "), tail(o.Log))
			if violated++; violated == *simViolated {
				stop()
			}
		}
	}
}

// tail returns what led to the first broken promise.
func tail(log string) string {
	before, _, found := strings.Cut(log, "BROKEN")
	if !found {
		before = log
	}
	lines := strings.Split(before, "\n")
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}

func (c *counts) add(o counts) {
	c.Tasks, c.Done, c.Failed, c.Cancelled, c.Lost = c.Tasks+o.Tasks, c.Done+o.Done, c.Failed+o.Failed, c.Cancelled+o.Cancelled, c.Lost+o.Lost
	c.TakenOver, c.Kills, c.Lives, c.Moves = c.TakenOver+o.TakenOver, c.Kills+o.Kills, c.Lives+o.Lives, c.Moves+o.Moves
	c.Retried, c.HandedOn, c.Sent, c.Known = c.Retried+o.Retried, c.HandedOn+o.HandedOn, c.Sent+o.Sent, c.Known+o.Known
}

// TestASeedReplays holds that a seed is the whole of its schedule: what two runs of it tell is the
// same, byte for byte.
func TestASeedReplays(t *testing.T) {
	if *simReplays == 0 {
		t.Skip("the race detector runs goroutines in any order")
	}
	first := max(*simSeed, defaultSeed)
	for seed := range *simReplays {
		one, other := simulate(t, first+seed), simulate(t, first+seed)
		if string(one.log) == string(other.log) {
			continue
		}
		i := 0
		for i < min(len(one.log), len(other.log)) && one.log[i] == other.log[i] {
			i++
		}
		t.Errorf("seed %d: after\n%s\nit went on once with\n%s\nand once with\n%s", one.seed, one.log[max(0, i-1000):i], one.log[i:min(i+500, len(one.log))], other.log[i:min(i+500, len(other.log))])
	}
}
