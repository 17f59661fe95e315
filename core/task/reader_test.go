package task_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/task"
)

// watch adds a viewer behind a cursor.
func watch(t *testing.T, one *task.Task, from core.Cursor) (*inbox, *task.Reader) {
	t.Helper()
	in := &inbox{}
	r, err := one.Watch(in, from, nil)
	if err != nil {
		t.Fatalf("watching from %s: %v", from, err)
	}
	return in, r
}

func TestEveryReaderReadsAtItsOwnPace(t *testing.T) {
	s, _, _ := newStore()
	one, w := run(s)
	quick, _ := watch(t, one, core.Cursor{})
	slow, _ := watch(t, one, core.Cursor{})
	wantRead(t, "quick", quick, "1 2")
	report(t, one, w, core.Text{Text: "a"})
	wantRead(t, "quick", quick, "3")
	report(t, one, w, core.Text{Text: "b"})
	conclude(t, one, w, core.Done{})
	wantRead(t, "quick", quick, "4 5 over")
	wantRead(t, "slow", slow, "1 2 3 4 5 over")
	if slow.calls != 1 {
		t.Errorf("got %d notifications of a reader that took nothing, want one", slow.calls)
	}
}

func TestAReturningReaderGetsTheMissedEvents(t *testing.T) {
	s, _, _ := newStore()
	one, w := run(s)
	in, r := watch(t, one, core.Cursor{})
	first := in.take()[0]
	cursor := first.Events[1].Cursor()
	if !r.Close() || r.Close() {
		t.Error("Close: want true once")
	}
	report(t, one, w, core.Text{Text: "missed"})
	if in.calls != 1 {
		t.Error("a closed reader was told of news")
	}
	back, _ := watch(t, one, cursor)
	wantRead(t, "who came back", back, "3")
	conclude(t, one, w, core.Done{})
	wantRead(t, "who came back", back, "4 over")
	if _, r := watch(t, one, one.Last().Cursor()); r != nil {
		t.Error("a reader after the end: got one, want none")
	}
}

func TestACursorOfAnotherTaskIsRefused(t *testing.T) {
	s, _, _ := newStore()
	one, _ := run(s)
	for _, c := range []core.Cursor{{Epoch: 1, Seq: 3}, {Epoch: 2, Seq: 1}, {Seq: 1}} {
		_, err := one.Watch(&inbox{}, c, nil)
		wantFault(t, "cursor "+c.String(), err, core.CodeInvalid)
	}
}

func TestEachRoleGetsItsEvents(t *testing.T) {
	s, _, _ := newStore()
	one := open(s)
	plain := &worker{} // declares neither cancellation nor injection
	var requester, viewer, waiter, recorder inbox
	one.Attach(&requester, task.Requester, "mine", 0)
	one.Attach(&viewer, task.Viewer, nil, 0)
	one.Attach(&waiter, task.Waiter, nil, 0)
	one.Attach(&recorder, task.Recorder, nil, 0)
	one.Assign(task.Assignment{Worker: plain, Agent: "bob"})
	report(t, one, plain, core.Text{Text: "x"}, core.ApprovalRequested{ID: "1"})
	if err := one.Decide(core.ApprovalDecided{ID: "1", By: "ann"}); err != nil {
		t.Fatal(err)
	}
	wantRead(t, "the agent", &plain.inbox, "2 5")
	wantRead(t, "the waiter", &waiter, "")
	if err := one.Cancel("ann", ""); err != nil {
		t.Fatal(err)
	}
	for name, in := range map[string]*inbox{"requester": &requester, "viewer": &viewer, "recorder": &recorder} {
		wantRead(t, "the "+name, in, "1 2 3 4 5 6 7 8 over") // 7 is the end of the tool call
	}
	wantRead(t, "the waiter", &waiter, "over")
	wantRead(t, "the agent that cannot be told of a cancel", &plain.inbox, "8 over")
}

func TestAPieceCarriesTheRoleAndTheTagOfItsReader(t *testing.T) {
	s, _, _ := newStore()
	one := open(s)
	in := &inbox{}
	one.Attach(in, task.Requester, "mine", 0)
	if p := in.take()[0]; p.Task != one || p.Role != task.Requester || p.Tag != "mine" {
		t.Errorf("got task %s, role %d and tag %v", p.Task.ID(), p.Role, p.Tag)
	}
}

func TestAFollowerGetsNewEventsOnly(t *testing.T) {
	s, h, _ := newStore()
	one, w := run(s)
	in := &inbox{}
	if one.Follow(in, task.Viewer) == nil {
		t.Fatal("a running task: got no reader, want one")
	}
	if one.Follow(in, task.Viewer) != nil {
		t.Error("an inbox that already reads the task: got another reader, want none")
	}
	report(t, one, w, core.Text{Text: "x"})
	wantRead(t, "the follower", in, "3")
	h.setBehind(true)
	conclude(t, one, w, core.Done{})
	late := &inbox{}
	if one.Follow(late, task.Viewer) == nil {
		t.Fatal("a task whose end is not shown yet: got no reader, want one")
	}
	one.SetRecorded(4)
	wantRead(t, "the late follower", late, "4 over")
	if one.Follow(&inbox{}, task.Viewer) != nil {
		t.Error("an ended task: got a reader, want none")
	}
}

func TestADetachedReaderGetsNothing(t *testing.T) {
	s, _, _ := newStore()
	one, w := run(s)
	in := &inbox{}
	for _, role := range []task.Role{task.Requester, task.Waiter} {
		one.Attach(in, role, nil, 2)
	}
	one.Detach(in, task.Requester, task.Waiter)
	conclude(t, one, w, core.Done{})
	wantRead(t, "who was detached", in, "")
}

func TestConcurrentReadersReadEveryEventOnce(t *testing.T) {
	s, _, _ := newStore()
	one, w := run(s)
	const chunks, readers = 2000, 6
	var all sync.WaitGroup
	for range readers {
		in := &notifying{t: t, wake: make(chan *task.Reader, 1)}
		one.Attach(in, task.Viewer, nil, 0)
		all.Go(func() {
			next := uint64(1)
			for r := range in.wake {
				p, _ := r.Take()
				for _, e := range p.Events {
					if e.Seq != next {
						t.Errorf("got sequence %d, want %d", e.Seq, next)
						return
					}
					next++
				}
				if p.Over {
					break
				}
			}
			if next != chunks+4 {
				t.Errorf("got events up to %d, want %d", next-1, chunks+3)
			}
		})
	}
	for range chunks {
		report(t, one, w, core.Text{Text: "x"})
	}
	conclude(t, one, w, core.Done{})
	all.Wait()
}

// notifying is an inbox of one reader, which is notified at most once between takes.
type notifying struct {
	t    *testing.T
	wake chan *task.Reader
}

func (n *notifying) Ready(r *task.Reader) bool {
	select {
	case n.wake <- r:
	default:
		n.t.Error("a reader was ready twice before it took")
	}
	return true
}

func (*notifying) Principal() core.Principal { return core.Principal{} }

// inJournal returns a task of a new store whose journal has its events.
func inJournal(t *testing.T, events ...core.Event) *task.Task {
	t.Helper()
	s, _, j := newStore()
	for _, e := range events {
		if err := j.Append(t.Context(), journal.Record{Task: "a", Event: e}); err != nil {
			t.Fatal(err)
		}
	}
	one, err := find(t, s, j, "a")
	if err != nil {
		t.Fatal(err)
	}
	return one
}

func event(epoch uint32, seq uint64, body core.Body) core.Event {
	return core.Event{Epoch: epoch, Seq: seq, Body: body}
}

func TestEventsDroppedByRetentionAreAGap(t *testing.T) {
	one := inJournal(t, event(1, 5, core.Text{Text: "e"}), event(1, 6, core.Done{}))
	in, _ := watch(t, one, core.Cursor{})
	wantRead(t, "from the beginning", in, "gap 1-4 5 6 over")
	in, _ = watch(t, one, core.Cursor{Epoch: 1, Seq: 2})
	wantRead(t, "from within the gap", in, "gap 3-4 5 6 over")
	in, _ = watch(t, one, core.Cursor{Epoch: 1, Seq: 5})
	wantRead(t, "from behind the gap", in, "6 over")
}

func TestACursorAheadOfTheJournalGetsAGap(t *testing.T) {
	one := inJournal(t, event(1, 1, core.Opened{}), event(1, 2, core.Assigned{Agent: "bob"}), event(2, 3, core.Failed{Fault: core.NewFault(core.CodeUnreachable, "the hub stopped")}))
	in, _ := watch(t, one, core.Cursor{Epoch: 1, Seq: 9})
	wantRead(t, "who had read more than the journal kept", in, "gap 3-9 3 over")
	in, _ = watch(t, one, core.Cursor{Epoch: 1, Seq: 2})
	wantRead(t, "who had read what the journal kept", in, "3 over")
}

func TestACursorInsideMergedTextGetsTheRemainder(t *testing.T) {
	var words []core.Event
	for i, text := range []string{"one ", "two ", "three"} {
		words = append(words, event(1, uint64(i+2), core.Text{Text: text}))
	}
	one := inJournal(t, event(1, 1, core.Opened{}), core.MergeText(words), event(1, 5, core.Done{}))
	in, _ := watch(t, one, core.Cursor{Epoch: 1, Seq: 3})
	got := in.take()[0].Events
	if text := got[0].Body.(core.Text).Text; len(got) != 2 || got[0].Seq != 4 || text != "three" {
		t.Errorf("got %d events, the first %d with %q; want 4 with \"three\" and the end", len(got), got[0].Seq, text)
	}
}

// damaged is a journal that lost a record in the middle.
type damaged struct {
	journal.Journal
	events []core.Event
	gap    error
}

func (d damaged) Read(context.Context, core.TaskID, uint64, int) ([]core.Event, error) {
	return d.events, d.gap
}

func TestEventsMissingInTheMiddleAreAGap(t *testing.T) {
	lost := damaged{
		events: []core.Event{event(1, 1, core.Opened{}), event(1, 2, core.Text{Text: "a"}), event(1, 5, core.Text{Text: "b"}), event(1, 6, core.Done{})},
		gap:    &journal.GapError{Task: "a", From: 3, To: 4},
	}
	s := task.NewStore(limits, &host{}, lost)
	one, err := find(t, s, lost, "a")
	if err != nil {
		t.Fatal(err)
	}
	in, _ := watch(t, one, core.Cursor{})
	wantRead(t, "a reader", in, "1 2 gap 3-4 5 6 over")
	if a := one.Answer(); !a.Truncated || !strings.HasPrefix(a.Text, "ab") {
		t.Errorf("the answer: got %q, truncated %v, want it truncated", a.Text, a.Truncated)
	}
}

func TestAReaderThatCoalescesGetsTextWithTheNextEventOfAnotherKind(t *testing.T) {
	s, _, _ := newStore()
	one, w := run(s)
	in := &inbox{}
	r, err := one.Watch(in, core.Cursor{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Coalesce()
	wantRead(t, "the reader, at once,", in, "1 2")
	report(t, one, w, core.Text{Text: "a"}, core.Thinking{Text: "b"}, core.Text{Text: "c"})
	wantRead(t, "the reader, of text alone,", in, "")
	report(t, one, w, core.ToolCall{ID: "1", Name: "rm"})
	wantRead(t, "the reader, with the call of a tool,", in, "3 4 5 6")
	report(t, one, w, core.Text{Text: "d"})
	conclude(t, one, w, core.Done{})
	wantRead(t, "the reader, with the end,", in, "7 8 9 over")
}
