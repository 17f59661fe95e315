//go:build unix

package nats_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// One hub is killed, and another time stopped, while it writes. What it knew to be stored is
// there, before one end; what it writes later is not.
func TestAHubThatDiesOrWakesUpLosesNothingThatWasStoredAndAddsNothing(t *testing.T) {
	at := addresses(t, 3)
	dir, first := t.TempDir(), core.TaskID(core.NewID())
	a := startPlayed(t, player{Dir: dir, At: at, Task: first})
	hubs := startOthers(t, at)
	check := func(task core.TaskID, stored uint64) {
		t.Helper()
		for name, j := range hubs {
			var events []core.Event
			var err error
			insist(t, func(ctx context.Context) error {
				events, err = j.ReadOf(ctx, "a", task, 0, 0)
				if f := core.AsFault(err); f != nil && f.Retryable {
					return err // it says to try again
				}
				return nil
			})
			if err != nil || len(events) == 0 {
				t.Fatalf("hub %s: got %v, want the events of the task", name, err)
			}
			for i, e := range events {
				if e.Seq != uint64(i+1) || e.Body.Kind().Ends() != (i == len(events)-1) {
					t.Errorf("hub %s: got event %d, %s, at place %d of %d, want one end, and nothing missing", name, e.Seq, e.Body.Kind(), i+1, len(events))
				}
			}
			if last := events[len(events)-1].Seq; last <= stored {
				t.Errorf("hub %s: got the end as event %d, want it behind %d, which was stored", name, last, stored)
			}
		}
	}

	a.until(t, 200)
	ledElsewhere(t, hubs["b"], "a")
	a.until(t, a.last+200)
	if err := a.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	e := takenOver(t, hubs["b"], a.life)
	taken := time.Since(killed)
	if n := end(t, e); n != 1 {
		t.Errorf("got %d tasks without an end, want one", n)
	}
	t.Logf("killed: fence taken after %s, end stored after %s", taken, time.Since(killed))
	a.until(t, 0) // what was printed before the kill
	check(first, a.last)
	_ = a.cmd.Wait() // its address is free then

	second := core.TaskID(core.NewID())
	a = startPlayed(t, player{Dir: dir, At: at, Task: second})
	a.until(t, 200)
	if a.life.Hub != "a" || a.life.Epoch < 2 { // the epoch is higher if the start had to be repeated, since an answer came late
		t.Errorf("got the life %s, want one of a after a/1", a.life)
	}
	ledElsewhere(t, hubs["b"], "a")
	a.until(t, a.last+50)
	if err := a.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stopped := time.Now()
	if n := end(t, takenOver(t, hubs["c"], a.life)); n != 1 {
		t.Errorf("got %d tasks without an end, want one", n)
	}
	t.Logf("stopped: end stored after %s", time.Since(stopped))
	if err := a.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	a.until(t, 0)
	if err := a.cmd.Wait(); err == nil || !strings.Contains(a.err.String(), "another hub has taken over the journal of hub a (c/1 (host ") {
		t.Errorf("the hub that woke up: got %v and %q, want it to end since c/1 has its journal", err, a.err.String())
	}
	check(second, a.last)

	begin := time.Now()
	insist(t, func(ctx context.Context) error { return hubs["c"].Append(ctx, taskRecords("own")...) }) // its stream may have been led by a
	t.Logf("hub c, whose stream a may have led, stores again after %s", time.Since(begin))
	ledElsewhere(t, hubs["c"], "b")
}
