package recorder_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/usage"
)

const noLimit = time.Hour

func TestTheEventsOfTasksAreJournaled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(noLimit)
		var tasks []*task.Task
		for range 3 {
			one, w := s.run()
			tasks = append(tasks, one)
			report(t, one, w, core.Accepted{}, core.Text{Text: "forty"}, core.Text{Text: "-two"}, core.Done{})
		}
		for _, one := range tasks {
			if err := one.Recorded(t.Context(), 6); err != nil {
				t.Fatal(err)
			}
			events := s.read(t, one)
			if len(events) != 5 || events[4].Seq != 6 {
				t.Errorf("got %d events, want 5: the text is one", len(events))
			}
			if a := core.Fold(events); a.Text != "forty-two" || a.End != core.KindDone || !one.IsRecorded() {
				t.Errorf("got %q and the end %s, want forty-two, done", a.Text, a.End)
			}
		}
		if got := s.disk.written(); got != 1 {
			t.Errorf("got %d writes, want one for simultaneous events", got)
		}
		s.stop(t)
	})
}

func TestOnlyTextIsDelayedBeforeItIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(noLimit)
		one, w := s.run()
		report(t, one, w, core.Text{Text: "a"})
		<-time.After(5 * time.Millisecond)
		if got := len(s.read(t, one)); got != 2 {
			t.Errorf("at once: got %d events, want those before the text", got)
		}
		report(t, one, w, core.Text{Text: "b"})
		<-time.After(60 * time.Millisecond)
		if got := s.read(t, one); len(got) != 3 || got[2].Body.(core.Text).Text != "ab" {
			t.Errorf("after the delay: got %d events, want the text in one", len(got))
		}
		s.stop(t)
	})
}

// A task moves away and comes back while the recorder stands in a write: it has not read that it moved.
func TestATaskThatComesBackIsWrittenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(noLimit)
		one, w := s.run()
		synctest.Wait()
		s.Continue(one, 2)
		report(t, one, w, core.Text{Text: "a"})
		s.stop(t)
		if got := s.read(t, one); len(got) != 3 || got[2].Body.(core.Text).Text != "a" {
			t.Errorf("got %d events, the last %+v, want 3 with the text once", len(got), got[len(got)-1].Body)
		}
	})
}

func TestStopWritesDelayedText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(noLimit)
		one, w := s.run()
		report(t, one, w, core.Text{Text: "a"})
		s.stop(t)
		if got := len(s.read(t, one)); got != 3 {
			t.Errorf("got %d events, want 3", got)
		}
	})
}

func TestTasksDoNotWaitForASlowJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(noLimit)
		s.disk.set(func(d *disk) { d.takes = time.Second })
		begin := time.Now()
		for range 50 {
			one, w := s.run()
			report(t, one, w, core.Text{Text: "a"}, core.Done{})
			if one.State() != task.Ended {
				t.Fatalf("got %s, want the task ended", one.State())
			}
		}
		if took := time.Since(begin); took > 0 {
			t.Errorf("50 tasks took %s, want no time", took)
		}
		s.stop(t)
		if got := s.unrecorded(); got > 0 {
			t.Errorf("got %d tasks that are not recorded, want none", got)
		}
	})
}

func TestAnEndWaitsForAJournalThatIsTooSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(100 * time.Millisecond)
		s.disk.set(func(d *disk) { d.takes = time.Second })
		one, w := s.run()
		<-time.After(50 * time.Millisecond)
		if s.Behind() {
			t.Error("within the limit: the journal is behind, want it not behind")
		}
		<-time.After(100 * time.Millisecond)
		if !s.Behind() {
			t.Error("beyond the limit: the journal is not behind, want it behind")
		}
		endReady := make(chan struct{})
		one.Attach(ready(func(*task.Reader) { close(endReady) }), task.Waiter, nil, 0)
		report(t, one, w, core.Done{})
		<-endReady
		if one.State() != task.Running {
			t.Errorf("got %s, want the end not shown", one.State())
		}
		if err := one.Recorded(t.Context(), 3); err != nil || one.State() != task.Ended {
			t.Errorf("once it is recorded: got %s and %v, want it ended", one.State(), err)
		}
		synctest.Wait()
		if s.Behind() {
			t.Error("with everything written: the journal is behind, want it not behind")
		}
		s.stop(t)
	})
}

// ready is an inbox.
type ready func(*task.Reader)

func (f ready) Ready(r *task.Reader) bool {
	f(r)
	return true
}

func (f ready) Principal() core.Principal { return core.Principal{ID: "ann"} }

func TestANegativeLagIsAlwaysExceeded(t *testing.T) {
	s := start(-1)
	if !s.Behind() {
		t.Error("got a journal that is not behind")
	}
	s.stop(t)
}

func TestFailedWritesAreRetriedUntilTheySucceed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(noLimit)
		full := errors.New("the disk is full")
		if h := s.Health(); h.Err != nil || !h.Since.IsZero() {
			t.Errorf("at first: got %+v, want it healthy", h)
		}
		s.disk.set(func(d *disk) { d.refuses = full })
		begin := time.Now()
		one, w := s.run()
		report(t, one, w, core.Text{Text: "a"}, core.Done{})
		<-time.After(time.Second)
		h := s.Health()
		if !errors.Is(h.Err, full) || h.Since.Sub(begin) > 10*time.Millisecond {
			t.Errorf("while it fails: got %v since %s, want %v since the first failure", h.Err, h.Since, full)
		}
		if one.State() != task.Ended || one.IsRecorded() {
			t.Errorf("the task: got %s, recorded %v; want it ended and not recorded", one.State(), one.IsRecorded())
		}
		if got := s.counted("journal.refused"); got < 3 || s.counted("journal.failing") != 1 {
			t.Errorf("got %d refusals and %d failures, want several attempts and one failure", got, s.counted("journal.failing"))
		}
		s.disk.set(func(d *disk) { d.refuses = nil })
		if err := one.Recorded(t.Context(), 4); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if h := s.Health(); h.Err != nil || !h.Since.IsZero() {
			t.Errorf("after recovery: got %+v, want it healthy", h)
		}
		s.stop(t)
		log := s.log.String()
		if strings.Count(log, "takes no records") != 1 || strings.Count(log, "takes records again") != 1 {
			t.Errorf("got the log\n%swant one line when it fails and one when it recovers", log)
		}
	})
}

func TestAJournalThatReportsAFailureIsFailing(t *testing.T) {
	s := start(noLimit)
	gone := errors.New("the directory is gone")
	s.disk.set(func(d *disk) { d.failure = gone })
	if h := s.Health(); !errors.Is(h.Err, gone) {
		t.Errorf("got %v, want %v", h.Err, gone)
	}
	s.disk.set(func(d *disk) { d.failure = nil })
	if h := s.Health(); h.Err != nil {
		t.Errorf("after the failure: got %v, want nil", h.Err)
	}
	s.stop(t)
}

func TestStopGivesUpOnAFailingOrHangingJournal(t *testing.T) {
	for name, c := range map[string]struct {
		disk func(*disk)
		most time.Duration
	}{
		"refuses": {func(d *disk) { d.refuses = errors.New("the disk is full") }, 3 * time.Second},
		"hangs":   {func(d *disk) { d.takes = time.Hour }, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := start(noLimit)
				s.disk.set(c.disk)
				for range 2 {
					one, w := s.run()
					report(t, one, w, core.Done{})
				}
				begin := time.Now()
				err := s.Stop(s.unrecorded)
				if took := time.Since(begin); err == nil || !strings.Contains(err.Error(), "not recorded: 2") || took > c.most {
					t.Errorf("got %v after %s, want an error that counts 2 tasks within %s", err, took, c.most)
				}
			})
		})
	}
}

// tokens returns the tokens of the records that the usage store has.
func (s *fixture) tokens(t *testing.T) (all []int64) {
	t.Helper()
	if err := s.spent.Replay(t.Context(), func(r usage.Record) bool {
		all = append(all, r.Tokens.Input)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestUsageIsStoredBeforeItsEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(noLimit)
		s.spent.refuse(errors.New("not now"))
		one, w := s.run()
		report(t, one, w, core.Usage{Input: 7}, core.Done{})
		<-time.After(time.Second)
		if got := s.disk.written(); got > 0 {
			t.Errorf("got %d writes of events before their usage was stored, want none", got)
		}
		s.spent.refuse(nil)
		if err := one.Recorded(t.Context(), 4); err != nil {
			t.Fatal(err)
		}
		if got := s.tokens(t); len(got) != 1 || got[0] != 7 {
			t.Errorf("got the usage %v, want 7 once", got)
		}
		s.stop(t)
	})
}

func TestUsageAfterTheEndIsStoredOnceTheTaskIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(noLimit)
		s.disk.set(func(d *disk) { d.takes = time.Second })
		one, w := s.run()
		report(t, one, w, core.Usage{Input: 1})
		one.End(core.Cancelled{})
		for _, n := range []int64{2, 3} {
			if err := one.Report(w, core.Usage{Input: n}, nil); err == nil {
				t.Fatal("usage after the end: got no error, want one")
			}
		}
		synctest.Wait()
		if got := s.tokens(t); len(got) > 1 {
			t.Errorf("before the task is recorded: got the usage %v, want none reported after its end", got)
		}
		<-time.After(3 * time.Second)
		if got := s.tokens(t); len(got) != 2 || got[0] != 1 || got[1] != 5 {
			t.Errorf("got the usage %v, want 1 and then 5, reported after the end", got)
		}
		s.stop(t)
	})
}

func TestWaitingForTheJournalEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(noLimit)
		s.disk.set(func(d *disk) { d.takes = time.Minute })
		one, _ := s.run()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := one.Recorded(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
		}
		s.disk.set(func(d *disk) { d.takes = 0 })
		_ = s.Stop(s.unrecorded)
	})
}

func TestARecorderEndsWhenItsJournalWasTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(noLimit)
		s.disk.set(func(d *disk) { d.refuses = fmt.Errorf("another hub has it: %w", journal.ErrFenced) })
		one, w := s.run()
		report(t, one, w, core.Text{Text: "a"}, core.ToolCall{ID: "1"})
		<-time.After(time.Minute)
		if got := s.counted("journal.refused"); got != 1 || one.IsRecorded() || !s.Behind() {
			t.Errorf("got %d refusals, recorded: %t, behind: %t, want one refusal, nothing recorded and every end withheld", got, one.IsRecorded(), s.Behind())
		}
		if h := s.Health(); !errors.Is(h.Err, journal.ErrFenced) {
			t.Errorf("got the health %v, want %v", h.Err, journal.ErrFenced)
		}
		begin := time.Now()
		if err := s.Stop(s.unrecorded); !errors.Is(err, journal.ErrFenced) || time.Since(begin) > 0 {
			t.Errorf("stopping it: got %v after %s, want %v at once", err, time.Since(begin), journal.ErrFenced)
		}
	})
}
