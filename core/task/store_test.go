package task_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/task"
)

var version7 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

// idAfter returns the id of the task that is opened after one with an id ahead of the clock.
func idAfter(id core.TaskID) core.TaskID {
	s, _, _ := newStore()
	s.Recover(id, core.KindDone, time.Now())
	one := open(s)
	one.End(core.Cancelled{})
	return one.ID()
}

func TestTheIDAfterAnIDOfALaterTimeHasTheNextTime(t *testing.T) {
	for id, want := range map[core.TaskID]string{
		"f19b0000-0000-7000-8000-000000000001": "f19b0000-0000-7001-",
		"f19b0000-0000-7fff-bfff-ffffffffffff": "f19b0000-0001-7000-",
		"f19b0000-ffff-7fff-bfff-ffffffffffff": "f19b0001-0000-7000-",
	} {
		if got := idAfter(id); !strings.HasPrefix(string(got), want) {
			t.Errorf("after %s: got %s, want %s…", id, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		id := core.TaskID("f" + core.NewID()[1:])
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			next := idAfter(id)
			if !version7.MatchString(string(next)) || next <= id {
				t.Fatalf("got %s after %s, want a greater UUID of version 7", next, id)
			}
			id = next
		}
	})
}

func TestTaskIDsGrowEvenIfTheClockGoesBack(t *testing.T) {
	s, _, _ := newStore()
	s.Recover("no id of a task", core.KindDone, time.Now())
	last := core.TaskID("ffff0000-0000-7000-8000-000000000000") // a clock was ahead
	s.Recover(last, core.KindDone, time.Now())
	for range 100 {
		one := open(s)
		if one.ID() <= last {
			t.Fatalf("got %s after %s, want a greater id", one.ID(), last)
		}
		last = one.ID()
		one.End(core.Cancelled{})
	}
}

func TestTheIDOfATaskNamesItsOwner(t *testing.T) {
	for _, owner := range []int{0, 1, 7, task.MaxOwner} {
		l := limits
		l.Owner = owner
		s, _, _ := newStoreWith(l)
		for range 3 {
			if one := open(s); task.OwnerOf(one.ID()) != owner || !version7.MatchString(string(one.ID())) {
				t.Errorf("hub %d: got the task %s of hub %d", owner, one.ID(), task.OwnerOf(one.ID()))
			}
		}
	}
}

func TestATaskWithoutAThreadStartsOne(t *testing.T) {
	s, _, _ := newStore()
	alone, turn := open(s), openRequest(s, core.Request{To: core.ToAny(), Thread: "talk"})
	notice := openRequest(s, core.Request{Intent: core.IntentNotify, To: core.ToAny(), Thread: "talk"})
	if string(alone.Thread()) != string(alone.ID()) || alone.SharedThread() != "" || alone.IsTurn() {
		t.Errorf("on its own: got the thread %q", alone.Thread())
	}
	if turn.SharedThread() != "talk" || !turn.IsTurn() || notice.IsTurn() {
		t.Errorf("in a thread: got %q, a turn: %v, a notice a turn: %v", turn.SharedThread(), turn.IsTurn(), notice.IsTurn())
	}
}

func TestEndedTasksStayInMemoryUntilTheJournalHasThem(t *testing.T) {
	l := limits
	l.FinishedTasks = 1
	s, _, j := newStoreWith(l)
	var tasks []*task.Task
	for range 3 {
		one, w := run(s)
		report(t, one, w, core.Text{Text: "x"})
		conclude(t, one, w, core.Done{})
		s.Retain(one)
		tasks = append(tasks, one)
	}
	if got := len(s.InMemory()); got != 3 {
		t.Errorf("before recording: got %d in memory, want 3", got)
	}
	for _, one := range tasks {
		record(t, j, one)
	}
	one := s.FinishedBytes()
	if got := s.InMemory(); len(got) != 1 || got[0] != tasks[2] || one == 0 {
		t.Errorf("after recording: got %d in memory with %d bytes, want only the last", len(got), one)
	}
	found, err := find(t, s, j, tasks[0].ID())
	if err != nil {
		t.Fatal(err)
	}
	if found.Agent() != "bob" || found.From().ID != "ann" || found.Answer().Text != "x" || found.Receipt().Stage != core.StageRecorded || !found.IsRecorded() {
		t.Errorf("from the journal: got agent %s, from %s, text %q, receipt %s", found.Agent(), found.From().ID, found.Answer().Text, found.Receipt().Stage)
	}
	if err := found.Recorded(t.Context(), 99); err != nil {
		t.Errorf("waiting for a recorded task: got %v, want no error", err)
	}
	_, err = find(t, s, j, "nothing")
	wantFault(t, "a task that never was", err, core.CodeUnknownTask)
}

func TestALongAnswerTakesLittleMoreThanItSaysOnceNobodyReadsIt(t *testing.T) {
	s, _, j := newStore()
	one, w := run(s)
	in, _ := watch(t, one, core.Cursor{})
	const word, words = "0123456789", 1000
	for range words {
		report(t, one, w, core.Text{Text: word})
	}
	conclude(t, one, w, core.Done{})
	s.Retain(one)
	read := s.FinishedBytes()
	w.take()
	in.take()
	record(t, j, one)
	if unread := s.FinishedBytes(); unread > read/4 {
		t.Errorf("got %d bytes with a reader and %d without, want less than a quarter", read, unread)
	}
	if got := one.Answer().Text; got != strings.Repeat(word, words) {
		t.Errorf("got an answer of %d bytes, want all of it", len(got))
	}
	late, _ := watch(t, one, core.Cursor{Epoch: 1, Seq: 500})
	rest, next := "", uint64(501)
	for _, p := range late.take() {
		for _, e := range p.Events {
			if e.Seq != next {
				t.Fatalf("got event %d, want %d", e.Seq, next)
			}
			next = e.End() + 1
			if b, ok := e.Body.(core.Text); ok {
				rest += b.Text
			}
		}
	}
	if want := strings.Repeat(word, words+2-500); rest != want || next != words+4 {
		t.Errorf("from a cursor inside the text: got %d bytes up to event %d, want %d up to %d", len(rest), next-1, len(want), words+3)
	}
}

// What is forgotten is never recorded: it must not keep those in memory that ended after it.
func TestAForgottenTaskKeepsNoOtherInMemory(t *testing.T) {
	l := limits
	l.FinishedTasks = 1
	s, _, j := newStoreWith(l)
	refused := open(s)
	refused.DropContent()
	refused.Refuse(core.NewFault(core.CodeUnreachable, "nobody is there"))
	s.Retain(refused)
	s.Forget(refused)
	for range 3 {
		one, w := run(s)
		conclude(t, one, w, core.Done{})
		record(t, j, one)
		s.Retain(one)
	}
	if got := s.InMemory(); len(got) != 1 {
		t.Errorf("got %d tasks in memory, want the last alone", len(got))
	}
}

// find finds a task in memory or in a journal.
func find(t *testing.T, s *task.Store, j journal.Journal, id core.TaskID) (*task.Task, error) {
	return s.Find(id, func() ([]core.Event, error) { return j.Read(t.Context(), id, 0, 0) })
}

func TestATaskThatComesWhileTheJournalIsReadIsTheOneThatRuns(t *testing.T) {
	s, _, _ := newStore()
	var came *task.Task
	found, err := s.Find("a", func() ([]core.Event, error) {
		came = s.Remote("a", core.Event{Seq: 1, Epoch: 1, Body: core.Opened{Task: "a"}})
		return came.Events(), nil
	})
	if err != nil || found != came {
		t.Errorf("got %p and %v, want the task that runs, %p: what was read is only its beginning", found, err, came)
	}
}

func TestAListIsPagedNewestFirst(t *testing.T) {
	l := limits
	l.FinishedTasks = 2
	s, _, j := newStoreWith(l)
	var ids []core.TaskID
	for i := range 6 {
		one := openRequest(s, core.Request{To: core.ToAny(), Content: fmt.Sprint(i)})
		ids = append(ids, one.ID())
		w := assign(one)
		if i == 5 {
			break // runs
		}
		conclude(t, one, w, core.Done{})
		record(t, j, one)
		s.Retain(one)
	}
	slices.Reverse(ids)
	everybody := func(core.Principal) bool { return true }
	list := func(f task.Filter, mayRead func(core.Principal) bool) (got []core.TaskID) {
		t.Helper()
		for {
			page, before, err := s.List(t.Context(), f, nil, nil, func(from core.Principal, _ core.AgentID) (may, asSaid bool) { return mayRead(from), true })
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range page {
				got = append(got, one.ID)
			}
			if before == "" {
				return got
			}
			f.Before = before
		}
	}
	for _, limit := range []int{0, 1, 4} {
		if got := list(task.Filter{Limit: limit}, everybody); !slices.Equal(got, ids) {
			t.Errorf("pages of %d: got %v, want %v", limit, got, ids)
		}
	}
	for name, c := range map[string]struct {
		filter task.Filter
		want   []core.TaskID
	}{
		"running":      {task.Filter{State: "running"}, ids[:1]},
		"done":         {task.Filter{State: "done"}, ids[1:]},
		"of an agent":  {task.Filter{Agent: "bob"}, ids},
		"of another":   {task.Filter{Agent: "eve"}, nil},
		"of who asked": {task.Filter{From: "ann"}, ids},
		"older":        {task.Filter{Before: ids[3]}, ids[4:]},
	} {
		if got := list(c.filter, everybody); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
	if got := list(task.Filter{}, func(core.Principal) bool { return false }); len(got) > 0 {
		t.Errorf("without the right to read: got %v, want none", got)
	}
}

func TestAListReturnsTheErrorOfTheJournal(t *testing.T) {
	why := errors.New("the disk is gone")
	s := task.NewStore(limits, &host{}, damaged{gap: why})
	s.Recover("019b0000-0000-7000-8000-000000000001", core.KindDone, time.Now())
	if _, _, err := s.List(t.Context(), task.Filter{}, nil, nil, nil); !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
	if _, err := find(t, s, damaged{gap: why}, "a"); !errors.Is(err, why) {
		t.Errorf("finding: got %v, want %v", err, why)
	}
}

func TestWhoeverHasTheMostListedTasksLosesItsOwnOldest(t *testing.T) {
	l := limits
	l.FinishedTasks = 0
	s, _, j := newStoreWith(l)
	opens := func(who string) *task.Task {
		one := s.New(core.Principal{ID: who, Authenticated: true}, policy.Chain{}, core.Request{To: core.ToAny(), Content: "why?", Deadline: time.Now().Add(day)}, core.Trace{}, "")
		if err := s.Open(one, nil); err != nil {
			t.Fatal(err)
		}
		return one
	}
	asks := func(who string) core.TaskID {
		one := opens(who)
		conclude(t, one, assign(one), core.Done{})
		record(t, j, one)
		s.Retain(one)
		return one.ID()
	}
	runs := opens("ben")
	ofAnn, oldest := asks("ann"), asks("ben")
	var newest core.TaskID
	for range task.CatalogTasks + task.CatalogTasks/100 {
		newest = asks("ben")
	}
	list := func(f task.Filter) (ids []core.TaskID) {
		all, _, err := s.List(t.Context(), f, nil, nil, func(core.Principal, core.AgentID) (may, asSaid bool) { return true, true })
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range all {
			ids = append(ids, one.ID)
		}
		return ids
	}
	if got := list(task.Filter{From: "ann"}); !slices.Equal(got, []core.TaskID{ofAnn}) {
		t.Errorf("ann: got %v, want her task", got)
	}
	if got := list(task.Filter{Before: ofAnn}); !slices.Equal(got, []core.TaskID{runs.ID()}) {
		t.Errorf("before that: got %v, want the task of ben, which runs", got)
	}
	if got := list(task.Filter{Limit: 1}); !slices.Equal(got, []core.TaskID{newest}) {
		t.Errorf("the newest: got %v, want %s", got, newest)
	}
	if s.Lists(oldest) || s.Lists(ofAnn) || !s.Lists(newest) {
		t.Errorf("with all after it: got %t for the oldest task of ben, %t for that of ann and %t for the newest, want only that", s.Lists(oldest), s.Lists(ofAnn), s.Lists(newest))
	}
	if one, err := find(t, s, j, oldest); err != nil || one.From().ID != "ben" {
		t.Errorf("the oldest of ben: got %v, want it from the journal", err)
	}
	runs.End(core.Cancelled{})
}
