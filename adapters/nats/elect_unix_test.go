//go:build unix

package nats_test

import (
	"context"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/core"
)

// leader returns the name of the hub whose server leads a stream, as another one is told; "" if that
// cannot be told now.
func leader(ctx context.Context, j *nats.Journal, stream string) string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	s, err := j.JetStream().Stream(ctx, stream)
	if err != nil || s.CachedInfo().Cluster == nil {
		return ""
	}
	return s.CachedInfo().Cluster.Leader
}

// leads has the server of a hub lead a stream.
func leads(t *testing.T, j *nats.Journal, hub, stream string) {
	t.Helper()
	limit, tick := time.After(watchdog), time.NewTicker(100*time.Millisecond)
	defer tick.Stop()
	for got := leader(t.Context(), j, stream); got != hub; got = leader(t.Context(), j, stream) {
		ask := `{"placement":{"preferred":"` + hub + `"}}`
		_, _ = j.JetStream().Conn().Request("$JS.API.STREAM.LEADER.STEPDOWN."+stream, []byte(ask), time.Second) // it is asked again
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("hub %q leads the stream %s, want hub %s", got, stream, hub)
		}
	}
}

// othersElected has others elected in place of a hub. On a busy machine elections may take longer than
// the journal waits for them.
func othersElected(ctx context.Context, t *testing.T, j *nats.Journal, hub string) {
	t.Helper()
	err := j.ElectWithout(ctx, hub)
	for err != nil && ctx.Err() == nil {
		err = j.ElectWithout(ctx, hub)
	}
	if err != nil {
		t.Errorf("hub %s: got %v, want others elected", j.Life().Hub, err)
	}
}

// The hub a leads the stream of c, and stands still. What c was about to store waits for the next
// leader, which the others elect at once: by themselves the servers would take 4 seconds.
func TestOtherServersAreElectedForThoseOfAHubThatStandsStill(t *testing.T) {
	at := addresses(t, 3)
	a := startPlayed(t, player{Dir: t.TempDir(), At: at, Task: core.TaskID(core.NewID())})
	hubs := startOthers(t, at)
	go func() { // else it waits until somebody reads what it prints
		for a.out.Scan() {
		}
	}()
	leads(t, hubs["b"], "a", "c-tasks")
	if err := a.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() {
		err := hubs["c"].Append(ctx, taskRecords(core.TaskID(core.NewID()))...)
		for err != nil && ctx.Err() == nil {
			err = hubs["c"].Append(ctx, taskRecords(core.TaskID(core.NewID()))...)
		}
		if err != nil {
			t.Errorf("hub c: got %v, want it to store", err)
		}
	})
	for name, j := range hubs {
		all.Go(func() {
			othersElected(ctx, t, j, "a")
			if got := leader(ctx, j, "c-tasks"); got == "a" {
				t.Errorf("hub %s: got that %s still leads the stream of c, want another hub", name, got)
			}
		})
	}
	all.Wait()
	if err := a.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

// The servers would never elect others by themselves: they hear the hub.
func TestOtherServersAreElectedForThoseOfAHubThatRuns(t *testing.T) {
	hubs := formed(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	leads(t, hubs["b"], "a", "c-tasks")
	othersElected(ctx, t, hubs["b"], "a")
	for got := leader(ctx, hubs["b"], "c-tasks"); got == "" || got == "a"; got = leader(ctx, hubs["b"], "c-tasks") {
		if ctx.Err() != nil {
			t.Fatalf("got that hub %q leads the stream of c, want another one", got)
		}
	}
	insist(t, func(ctx context.Context) error { return hubs["c"].Append(ctx, taskRecords("after")...) })
}

func TestNobodyIsElectedAtAnExternalServer(t *testing.T) {
	j := opened(t, nats.Options{URL: external(t).ClientURL(), Name: "a"})
	if err := j.ElectWithout(t.Context(), "b"); err != nil {
		t.Errorf("got %v, want nothing done", err)
	}
}
