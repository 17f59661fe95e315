package nats_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
)

func TestMain(m *testing.M) {
	if text := os.Getenv(playsHub); text != "" {
		if err := play(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m,
		// The server library leaves these to the end of the process.
		goleak.IgnoreTopFunction("github.com/nats-io/nats-server/v2/server/stree.init.0.func1"),
	)
}

// watchdog bounds the waits of a test. Only a failing test reaches it.
const watchdog = 2 * time.Minute

// insist repeats what the journal refuses for a moment until it is done, as a hub does, and returns the
// errors before.
func insist(t *testing.T, do func(context.Context) error) (before []error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	for {
		err := do(ctx)
		if err == nil {
			return before
		}
		before = append(before, err)
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("got %v after %d tries, before %v, want it done at last", err, len(before), before[max(0, len(before)-3)])
		}
	}
}

func open(t *testing.T, o nats.Options) *nats.Journal {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	j, err := nats.Open(ctx, o)
	if err != nil {
		t.Fatalf("opening the journal: got %v, want no error", err)
	}
	return j
}

func TestTheEmbeddedServerIsAJournal(t *testing.T) {
	for _, sync := range []nats.Sync{nats.SyncInterval, nats.SyncAlways} {
		t.Run(string(sync), func(t *testing.T) {
			coretest.Journal(t, func(t *testing.T) journal.Journal { return open(t, nats.Options{Dir: t.TempDir(), Sync: sync}) })
		})
	}
	coretest.JournalRetention(t, func(t *testing.T) journal.Journal {
		return open(t, nats.Options{Dir: t.TempDir(), Keep: journal.Retention{Bytes: 64 << 10}})
	})
}

func TestAnExternalServerIsAJournal(t *testing.T) {
	s := external(t)
	n := 0
	coretest.Journal(t, func(t *testing.T) journal.Journal {
		n++
		return open(t, nats.Options{URL: s.ClientURL(), Name: "hub-" + string(rune('a'+n))})
	})
}

func TestTheHealthOfAJournalTellsThatAnExternalServerIsGone(t *testing.T) {
	s := external(t)
	j := open(t, nats.Options{URL: s.ClientURL()})
	defer j.Close()
	if err := j.Health(); err != nil {
		t.Errorf("while it is there: got %v, want nothing wrong", err)
	}
	s.Shutdown()
	s.WaitForShutdown()
	health := j.Health()
	for end := time.Now().Add(watchdog); health == nil && time.Now().Before(end); health = j.Health() {
		<-time.After(time.Millisecond) // until the connection has ended
	}
	if health == nil || !strings.Contains(health.Error(), s.ClientURL()) {
		t.Errorf("once it is gone: got %v, want it to name %s", health, s.ClientURL())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := j.Append(ctx, taskRecords("x")...); err == nil {
		t.Error("appending: got no error, want one")
	}
}

func TestARestartFindsFinishedTasksAndTheirEventsAgain(t *testing.T) {
	dir := t.TempDir()
	j := open(t, nats.Options{Dir: dir})
	opts := hub.Options{Journal: j}
	promises := coretest.Watch(&opts)
	h := hub.New(opts)
	promises.Read(h)
	peer := hub.Identity{Principal: core.Principal{ID: "r"}}
	agent, asker := h.Connect(hub.Identity{Principal: core.Principal{ID: "a"}}), h.Connect(peer)
	if err := agent.Join(core.Card{ID: "a"}, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	task, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "remember"}, hub.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []core.Body{core.Text{Text: "I "}, core.Text{Text: "will"}, core.Done{}} {
		if err := agent.Report(task.ID(), b, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := task.Recorded(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(t.Context(), "restart"); err != nil {
		t.Fatal(err)
	}
	for _, broken := range promises.Broken() {
		t.Error(broken)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}

	j = open(t, nats.Options{Dir: dir})
	defer j.Close()
	h = coretest.NewHub(t, hub.Options{Journal: j})
	if err := h.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	found, err := h.Task(t.Context(), peer.Principal, task.ID())
	if err != nil {
		t.Fatal(err)
	}
	if a := found.Answer(); a.Text != "I will" || a.End != core.KindDone {
		t.Errorf("got %q, %s, want %q, done", a.Text, a.End, "I will")
	}
	back := h.Connect(peer)
	defer back.Close(nil)
	if err := back.Watch(found, core.Cursor{Epoch: 1, Seq: 3}, nil); err != nil {
		t.Fatal(err)
	}
	b, err := back.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := core.Fold(b.Events).Text; got != "will" {
		t.Errorf("after the cursor: got %q, want %q", got, "will")
	}
}

func TestABadNameOrPolicyIsRefused(t *testing.T) {
	if _, err := nats.Open(t.Context(), nats.Options{Dir: t.TempDir(), Name: "a.b"}); err == nil {
		t.Error("got no error for the name a.b, want one")
	}
	if _, err := nats.ParseSync("sometimes"); err == nil {
		t.Error("got no error for the policy sometimes, want one")
	}
}

func BenchmarkAppend(b *testing.B) {
	j, err := nats.Open(b.Context(), nats.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	records := make([]journal.Record, 256)
	n := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		for i := range records {
			n++
			records[i] = journal.Record{Task: "t", Event: core.Event{Seq: n, At: time.Now(), Body: core.Text{Text: "a piece of text"}}}
		}
		if err := j.Append(b.Context(), records...); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "records/s")
}

// A hub that begins its first life twice, since nobody acknowledged the first try, was not alone before.
func TestOnlyTasksTellThatAHubHasRunBefore(t *testing.T) {
	o := nats.Options{Dir: t.TempDir()}
	for _, c := range []struct {
		life string
		want bool
	}{{"the first one", false}, {"another one without tasks", false}, {"one after a task", true}} {
		j := open(t, o)
		if got, err := j.HasTasks(t.Context()); err != nil || got != c.want {
			t.Errorf("%s: got %v and %v, want %v", c.life, got, err, c.want)
		}
		if c.life == "another one without tasks" {
			if err := j.Append(t.Context(), taskRecords("a")...); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
