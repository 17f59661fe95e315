//go:build unix

package nats_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
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
			events, err := j.ReadOf(t.Context(), "a", task, 0, 0)
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
	e, err := hubs["b"].TakeOver(t.Context(), a.life)
	if err != nil {
		t.Fatal(err)
	}
	taken := time.Since(killed)
	if n := end(t, e); n != 1 {
		t.Errorf("got %d tasks without an end, want one", n)
	}
	t.Logf("killed: fence taken after %s, end stored after %s", taken, time.Since(killed))
	a.until(t, 0) // what was printed before the kill
	check(first, a.last)

	second := core.TaskID(core.NewID())
	a = startPlayed(t, player{Dir: dir, At: at, Task: second})
	a.until(t, 200)
	if want := (journal.Life{Hub: "a", Epoch: 2}); a.life != want {
		t.Errorf("got the life %s, want %s", a.life, want)
	}
	ledElsewhere(t, hubs["b"], "a")
	a.until(t, a.last+50)
	if err := a.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stopped := time.Now()
	if e, err = hubs["c"].TakeOver(t.Context(), a.life); err != nil {
		t.Fatal(err)
	}
	if n := end(t, e); n != 1 {
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
	err = hubs["c"].Append(t.Context(), taskRecords("own")...)
	for err != nil && time.Since(begin) < 20*time.Second { // its stream may have been led by a
		err = hubs["c"].Append(t.Context(), taskRecords("own")...)
	}
	if err != nil {
		t.Errorf("got %v, want c to go on", err)
	}
	t.Logf("hub c, whose stream a may have led, stores again after %s", time.Since(begin))
	ledElsewhere(t, hubs["c"], "b")
}
