package nats_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// playsHub is the variable that makes the test binary a hub which writes one task, as its value
// says in JSON.
const playsHub = "TEST_PLAYS_HUB"

// player is what a played hub does.
type player struct {
	Dir  string
	At   []string
	Task core.TaskID
}

// play is the hub a of a cluster. It prints its life, and the number of each event once that is
// stored. It ends when its journal was taken over, or nobody reads that any more.
func play(text string) error {
	var p player
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return err
	}
	ctx := context.Background() // whoever has started it kills it
	j, err := nats.Open(ctx, member(p.Dir, "a", "open sesame", p.At, 0))
	if err != nil {
		return err
	}
	defer j.Close()
	fmt.Fprintln(os.Stdout, j.Life().Epoch)
	for seq := uint64(1); ; seq++ {
		body := core.Body(core.Text{Text: "on and on "})
		if seq == 1 {
			body = core.Opened{Request: core.Request{To: core.ToAgent("x"), Content: "go on"}}
		}
		r := journal.Record{Task: p.Task, Event: core.Event{Seq: seq, Epoch: 1, At: time.Now(), Body: body}}
		for err := j.Append(ctx, r); err != nil; err = j.Append(ctx, r) {
			if errors.Is(err, journal.ErrFenced) {
				return err
			}
		}
		fmt.Fprintln(os.Stdout, seq)
	}
}

// played is a played hub in a process of its own.
type played struct {
	cmd  *exec.Cmd
	out  *bufio.Scanner
	err  strings.Builder
	life journal.Life
	last uint64 // the last event that it knows to be stored
}

func startPlayed(t *testing.T, p player) *played {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	a := &played{cmd: exec.Command(self)}
	a.cmd.Env = append(os.Environ(), playsHub+"="+string(text), "GORACE=atexit_sleep_ms=0")
	a.cmd.Stderr = &a.err
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	a.out = bufio.NewScanner(out)
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = a.cmd.Process.Kill() // it may have ended
		_ = a.cmd.Wait()
	})
	return a
}

// until reads what the hub prints until the event seq is stored, or to the end with 0.
func (a *played) until(t *testing.T, seq uint64) {
	t.Helper()
	for (seq == 0 || a.last < seq) && a.out.Scan() {
		n, err := strconv.ParseUint(a.out.Text(), 10, 64)
		switch {
		case err != nil:
			t.Fatalf("the hub printed %q: %v", a.out.Text(), err)
		case a.life.Epoch == 0:
			a.life = journal.Life{Hub: "a", Epoch: n}
		default:
			a.last = n
		}
	}
	if a.last < seq {
		t.Fatalf("the hub ended after event %d: %s", a.last, a.err.String())
	}
}

// ledElsewhere waits until a hub does not lead its own stream.
func ledElsewhere(t testing.TB, j *nats.Journal, hub string) {
	t.Helper()
	limit, tick := time.After(20*time.Second), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for {
		s, err := j.JetStream().Stream(t.Context(), hub+"-tasks")
		if err == nil && s.CachedInfo().Cluster.Leader != hub {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("hub %s leads its own stream still (%v)", hub, err)
		}
	}
}

// end stores the end of all tasks of an estate, and returns how many.
func end(t *testing.T, e journal.Estate) (n int) {
	t.Helper()
	var ends []journal.Record
	if err := e.Heads(t.Context(), func(h journal.Head) bool {
		fault := core.NewFault(core.CodeUnreachable, "the hub is gone")
		ends = append(ends, journal.Record{Task: h.Task, Event: core.Event{Seq: h.Last.End() + 1, Epoch: h.Last.Epoch + 1, At: time.Now(), Body: core.Failed{Fault: fault}}})
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if err := e.Append(t.Context(), ends...); err != nil {
		t.Fatal(err)
	}
	return len(ends)
}

// startOthers starts the hubs b and c of the cluster of a played hub.
func startOthers(t *testing.T, at []string) map[string]*nats.Journal {
	t.Helper()
	hubs := map[string]*nats.Journal{}
	type started struct {
		name string
		*nats.Journal
		error
	}
	all := make(chan started)
	for n, name := range map[int]string{1: "b", 2: "c"} {
		o := member(t.TempDir(), name, "open sesame", at, n)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
			defer cancel()
			j, err := nats.Open(ctx, o)
			all <- started{name, j, err}
		}()
	}
	for range 2 {
		s := <-all
		if s.error != nil {
			t.Fatal(s.error)
		}
		hubs[s.name] = s.Journal
		t.Cleanup(func() { _ = s.Close() })
	}
	return hubs
}

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
