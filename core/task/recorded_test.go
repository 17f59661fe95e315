package task_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/task"
)

func TestOnlyEndsWaitForAJournalThatIsBehind(t *testing.T) {
	s, h, _ := newStore()
	one, w := run(s)
	var viewer, waiter, recorder inbox
	one.Attach(&viewer, task.Viewer, nil, 2)
	one.Attach(&waiter, task.Waiter, nil, 2)
	one.Attach(&recorder, task.Recorder, nil, 2)
	h.setBehind(true)
	report(t, one, w, core.Text{Text: "x"})
	conclude(t, one, w, core.Done{})
	wantRead(t, "a viewer", &viewer, "3")
	wantRead(t, "a waiter", &waiter, "")
	wantRead(t, "the recorder", &recorder, "3 4 over")
	wantRead(t, "the agent", &w.inbox, "2 4 over")
	if one.State() != task.Running || one.Status().State != "running" || len(one.Events()) != 3 || !one.HasEnded() {
		t.Errorf("got %s, %s and %d events, want running and 3", one.State(), one.Status().State, len(one.Events()))
	}
	late, _ := watch(t, one, core.Cursor{Epoch: 1, Seq: 3})
	wantRead(t, "who comes now", late, "")

	one.SetRecorded(3) // not yet the end
	wantRead(t, "a viewer", &viewer, "")
	one.SetRecorded(4)
	wantRead(t, "a viewer", &viewer, "4 over")
	wantRead(t, "a waiter", &waiter, "over")
	wantRead(t, "who came in between", late, "4 over")
	if one.State() != task.Ended || one.Status().State != "done" || h.recorded[one.ID()] != 4 {
		t.Errorf("got %s, %s, recorded up to %d, want ended, done and 4", one.State(), one.Status().State, h.recorded[one.ID()])
	}
}

func TestAShownEndStaysShown(t *testing.T) {
	s, h, _ := newStore()
	one, w := run(s)
	conclude(t, one, w, core.Done{})
	if one.State() != task.Ended {
		t.Fatalf("a journal that is not behind: got %s, want ended", one.State())
	}
	h.setBehind(true)
	in, _ := watch(t, one, core.Cursor{})
	wantRead(t, "who comes later", in, "1 2 3 over")
}

func TestTheFirstReaderAfterAJournalCaughtUpWakesTheOthers(t *testing.T) {
	s, h, _ := newStore()
	one, w := run(s)
	in, _ := watch(t, one, core.Cursor{})
	h.setBehind(true)
	conclude(t, one, w, core.Done{})
	wantRead(t, "a viewer", in, "1 2")
	h.setBehind(false)
	if one.State() != task.Ended {
		t.Fatalf("got %s, want ended", one.State())
	}
	wantRead(t, "a viewer", in, "3 over")
}

func TestAWaiterForTheJournalReturnsOnceTheJournalHasTheEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, _ := newStore()
		one, _ := run(s)
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- one.Recorded(t.Context(), 1) }()
		go func() { second <- one.Recorded(t.Context(), 2) }()
		synctest.Wait()
		one.SetRecorded(1)
		if err := <-first; err != nil || one.IsRecorded() {
			t.Errorf("the first event: got %v, recorded whole: %v", err, one.IsRecorded())
		}
		synctest.Wait()
		if len(second) > 0 {
			t.Error("the second event: told before it was recorded")
		}
		one.SetRecorded(2)
		if err := <-second; err != nil || !one.IsRecorded() {
			t.Errorf("the second event: got %v, recorded whole: %v", err, one.IsRecorded())
		}
		if err := one.Recorded(t.Context(), 2); err != nil {
			t.Errorf("already recorded: got %v, want no error", err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("gone")
		cancel(why)
		if err := one.Recorded(ctx, 3); !errors.Is(err, why) {
			t.Errorf("a waiter whose context ends: got %v, want %v", err, why)
		}
	})
}

func TestInAClusterARequestIsReadAtOnceUnlessItsContentWasDropped(t *testing.T) {
	inCluster := limits
	inCluster.Cluster = true
	s, _, _ := newStoreWith(inCluster)
	for i, row := range []struct {
		name    string
		dropped bool
		want    string // before it is stored
		later   string // once it is
	}{{"with its content", false, "1", ""}, {"without it", true, "", "1"}} {
		t.Run(row.name, func(t *testing.T) {
			one := s.New(core.Principal{ID: "ann"}, policy.Chain{}, core.Request{To: core.ToAgent("bob"), Content: "why?", Deadline: time.Now().Add(day)}, core.Trace{}, "")
			s.Adopt(one, event(1, 1, core.Opened{Task: core.TaskID(fmt.Sprintf("0197f6a0-0000-7000-8000-00000000000%d", i)), From: one.From(), Request: one.Request()}), nil)
			if row.dropped {
				one.DropContent()
			}
			var viewer, waiter inbox
			one.Attach(&viewer, task.Viewer, nil, 0)
			one.Attach(&waiter, task.Waiter, nil, 0)
			one.Refuse(core.NewFault(core.CodeUnreachable, "nobody is there"))
			wantRead(t, "a viewer", &viewer, row.want)
			wantRead(t, "a waiter", &waiter, "")
			if got := len(one.Events()); got != 1 {
				t.Errorf("what reads it once: got %d events, want the first one", got)
			}
			one.SetRecorded(1)
			wantRead(t, "a viewer of what was stored", &viewer, row.later)
			one.SetRecorded(2)
			wantRead(t, "a viewer of the end", &viewer, "2 over")
			wantRead(t, "a waiter for the end", &waiter, "over")
			var late inbox
			one.Attach(&late, task.Waiter, nil, 1)
			wantRead(t, "one that awaits it later", &late, "over")
		})
	}
}
