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
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
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
	fmt.Fprintln(os.Stdout, j.Life().Hub, j.Life().Epoch)
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
	tier.Full(t, "it runs three NATS servers")
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
		var err error
		if a.life.Epoch == 0 {
			_, err = fmt.Sscan(a.out.Text(), &a.life.Hub, &a.life.Epoch)
		} else {
			a.last, err = strconv.ParseUint(a.out.Text(), 10, 64)
		}
		if err != nil {
			t.Fatalf("the hub printed %q: %v", a.out.Text(), err)
		}
	}
	if a.last < seq {
		t.Fatalf("the hub ended after event %d: %s", a.last, a.err.String())
	}
}

// ledElsewhere waits until a hub does not lead its own stream.
func ledElsewhere(t testing.TB, j *nats.Journal, hub string) {
	t.Helper()
	limit, tick := time.After(watchdog), time.NewTicker(50*time.Millisecond)
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
	insist(t, func(ctx context.Context) error {
		ends = nil
		return e.Heads(ctx, func(h journal.Head) bool {
			fault := core.NewFault(core.CodeUnreachable, "the hub is gone")
			ends = append(ends, journal.Record{Task: h.Task, Event: core.Event{Seq: h.Last.End() + 1, Epoch: h.Last.Epoch + 1, At: time.Now(), Body: core.Failed{Fault: fault}}})
			return true
		})
	})
	insist(t, func(ctx context.Context) error { return e.Append(ctx, ends...) })
	return len(ends)
}

// takenOver takes a life over.
func takenOver(t *testing.T, j *nats.Journal, of journal.Life) (e journal.Estate) {
	t.Helper()
	insist(t, func(ctx context.Context) (err error) {
		e, err = j.TakeOver(ctx, of)
		return err
	})
	return e
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
			ctx, cancel := context.WithTimeout(t.Context(), watchdog)
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
