package hub_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// lines is a log as text.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

// with returns the lines that contain the text.
func (l *lines) with(text string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.all.String()) {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

func TestAFailingJournalIsLoggedOnceAndAgainWhenItRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &moody{Memory: journal.NewMemory(journal.Retention{})}
		var log lines
		h := coretest.NewHub(t, hub.Options{Journal: j, Log: slog.New(slog.NewTextHandler(&log, nil))})
		g := &testHub{t, h}
		agent, asker := g.agent("a", able), g.connect("r")
		if got := h.JournalHealth(); got.Err != nil || !got.Since.IsZero() {
			t.Errorf("at the start: got %+v, want no failure", got)
		}
		j.refuse.Store(true)
		g.report(agent, g.ask(asker, "a"), core.Done{})
		g.sleep(time.Minute)
		if got, failed := h.JournalHealth(), time.Since(h.JournalHealth().Since); got.Err == nil || got.Err.Error() != "the disk is full" || failed < 59*time.Second || failed > time.Minute {
			t.Errorf("after a minute: got %v for %v, want the journal's own error for a minute", got.Err, failed)
		}
		j.allow()
		g.sleep(time.Second)
		if got := h.JournalHealth(); got.Err != nil || !got.Since.IsZero() {
			t.Errorf("after it recovered: got %+v, want no failure", got)
		}
		if got := log.with("the disk is full"); len(got) != 1 || !strings.Contains(got[0], "level=ERROR") {
			t.Errorf("got the lines %q, want one", got)
		}
		if got := log.with("the journal takes records again"); len(got) != 1 {
			t.Errorf("got the lines %q, want one", got)
		}
		if got := h.Counters(); got["journal.failing"] != 1 || got["journal.refused"] < 100 {
			t.Errorf("got the counters %v, want journal.failing 1 and every refusal", got)
		}
	})
}

// broken is a journal whose Health reports a failure.
type broken struct {
	*journal.Memory
	why error
}

func (i *broken) Health() error { return i.why }

func TestAJournalThatCannotRecordIsReportedBeforeTheFirstRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &broken{Memory: journal.NewMemory(journal.Retention{})}
		var log lines
		h := coretest.NewHub(t, hub.Options{Journal: j, Log: slog.New(slog.NewTextHandler(&log, nil))})
		j.why = errors.New("the directory was removed")
		for range 3 {
			if got := h.JournalHealth(); !errors.Is(got.Err, j.why) || got.Since.IsZero() {
				t.Errorf("got %+v, want %v", got, j.why)
			}
		}
		if got := log.with("the directory was removed"); len(got) != 1 {
			t.Errorf("got the lines %q, want one", got)
		}
		j.why = nil
		if got := h.JournalHealth(); got.Err != nil {
			t.Errorf("after it recovered: got %v, want no failure", got.Err)
		}
	})
}

// deaf is a journal that leaves writes without an answer while it is held.
type deaf struct {
	*journal.Memory
	held chan struct{} // nil while it is not, closed once it is not any more
}

func (d *deaf) Append(ctx context.Context, records ...journal.Record) error {
	if d.held != nil {
		<-d.held
	}
	return d.Memory.Append(ctx, records...)
}

func TestAHubTakesNothingExactlyWhileItIsNotReadyToRecord(t *testing.T) {
	type failing struct {
		journal.Journal
		fail, mend func()
		why        string
	}
	memory := func() *journal.Memory { return journal.NewMemory(journal.Retention{}) }
	for name, journalOf := range map[string]func() failing{
		"it refuses writes": func() failing {
			j := &moody{Memory: memory()}
			return failing{j, func() { j.refuse.Store(true) }, j.allow, "the disk is full"}
		},
		"it knows that it cannot record": func() failing {
			j := &broken{Memory: memory()}
			return failing{j, func() { j.why = errors.New("the directory was removed") }, func() { j.why = nil }, "the directory was removed"}
		},
		"it answers no writes": func() failing {
			j := &deaf{Memory: memory()}
			return failing{j, func() { j.held = make(chan struct{}) }, func() { close(j.held) }, "has not answered a write for more than 2s"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt := journalOf()
				g := &testHub{t, coretest.NewHub(t, hub.Options{Journal: tt})}
				agent, asker := g.agent("a", able), g.connect("r")
				taken := func() error {
					ready := g.hub.NotReady()
					opened, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{})
					if fmt.Sprint(ready) != fmt.Sprint(err) {
						t.Errorf("got %v for who asks whether the hub is ready, and %v for a request, want the same", ready, err)
					}
					if err == nil {
						g.report(agent, opened, core.Done{})
					}
					g.sleep(3 * time.Second)
					return err
				}
				if err := taken(); err != nil {
					t.Errorf("before it fails: got %v, want the task taken", err)
				}
				tt.fail()
				_ = taken() // it may not be known yet
				for range 3 {
					err := taken()
					g.wantFault("while it fails", err, core.CodeOverloaded)
					if f := core.AsFault(err); !f.Retryable || f.RetryAfter == 0 || !strings.Contains(f.Message, tt.why) {
						t.Errorf("got %v, want it retryable after a while, and %q", err, tt.why)
					}
				}
				tt.mend()
				g.sleep(time.Second)
				if err := taken(); err != nil {
					t.Errorf("after it recovered: got %v, want the task taken", err)
				}
			})
		})
	}
}

// electing is a journal on several servers, which store nothing while they elect a leader.
type electing struct {
	*journal.Memory
	on atomic.Bool
}

var errElection = errors.New("no leader")

func (e *electing) Append(ctx context.Context, records ...journal.Record) error {
	if e.on.Load() {
		return errElection
	}
	return e.Memory.Append(ctx, records...)
}

func (*electing) IsTemporary(err error) bool { return errors.Is(err, errElection) }

func TestAnElectionOfTheJournalRefusesNothingUnlessItLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &electing{Memory: journal.NewMemory(journal.Retention{})}
		g := &testHub{t, coretest.NewHub(t, hub.Options{Journal: j})}
		agent, asker := g.agent("a", able), g.connect("r")
		ask := func() error {
			opened, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{})
			if err == nil {
				g.report(agent, opened, core.Done{})
			}
			return err
		}
		j.on.Store(true)
		for range 8 {
			if err := ask(); err != nil {
				t.Fatalf("in the first 2s: got %v, want the task taken", err)
			}
			g.sleep(250 * time.Millisecond)
		}
		g.sleep(time.Second)
		g.wantFault("after 3s", ask(), core.CodeOverloaded)
		j.on.Store(false)
		g.sleep(time.Second)
		if err := ask(); err != nil {
			t.Errorf("with a leader: got %v, want the task taken", err)
		}
	})
}

func TestARefusalEndsWithItsCauseThoughNobodyAsksForTheHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &broken{Memory: journal.NewMemory(journal.Retention{})}
		g := &testHub{t, coretest.NewHub(t, hub.Options{Journal: j})}
		agent, asker := g.agent("a", able), g.connect("r")
		j.why = errors.New("the directory was removed")
		if g.hub.NotReady() == nil {
			t.Error("got a hub that is ready, want one that is not")
		}
		_, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{})
		g.wantFault("while it is so", err, core.CodeOverloaded)
		j.why = nil
		g.report(agent, g.ask(asker, "a"), core.Done{})
	})
}

func TestAStopReportsUnrecordedTasksAndDoesNotWaitLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &moody{Memory: journal.NewMemory(journal.Retention{})}
		opts := hub.Options{Journal: j}
		promises := coretest.Watch(&opts)
		h := hub.New(opts)
		promises.Read(h)
		promises.JournalRefused()
		g := &testHub{t, h}
		agent, asker := g.agent("a", able), g.connect("r")
		g.report(agent, g.ask(asker, "a"), core.Done{})
		g.sleep(time.Second)
		j.refuse.Store(true)
		for range 3 {
			g.report(agent, g.ask(asker, "a"), core.Done{})
		}
		start := time.Now()
		err := h.Close(t.Context(), "the test is over")
		if err == nil || !strings.Contains(err.Error(), "since they are not recorded: 3") || !strings.Contains(err.Error(), "the disk is full") {
			t.Errorf("closing: got %v, want an error with 3 unrecorded tasks and the reason", err)
		}
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("closing took %v, want at most 3s", took)
		}
		for _, broken := range promises.Broken() {
			t.Error(broken)
		}
	})
}
