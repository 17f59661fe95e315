package task_test

import (
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/task"
)

// copied opens a task that hub 3 is to own, and reads it.
func copied(t *testing.T, s *task.Store) (*task.Task, *inbox) {
	t.Helper()
	one := s.New(core.Principal{ID: "ann"}, policy.Chain{}, core.Request{To: core.ToAgent("bob"), Content: "why?", Deadline: time.Now().Add(day)}, core.Trace{}, "")
	if _, err := s.OpenRemote(one, 3, nil); err != nil {
		t.Fatal(err)
	}
	in := &inbox{}
	one.Attach(in, task.Requester, nil, 0)
	return one, in
}

func TestACopyIsReadLikeAnyTask(t *testing.T) {
	s, h, _ := newStore()
	one, in := copied(t, s)
	if got := task.OwnerOf(one.ID()); got != 3 || one.State() != task.Queued {
		t.Errorf("got a task of hub %d that is %s, want one of hub 3 that waits", got, one.State())
	}
	one.Extend([]core.Event{event(1, 2, core.Assigned{Agent: "bob", Attempt: 1}), event(1, 3, core.Text{Text: "x"})})
	if got := in.read(); got != "1 2 3" || one.Agent() != "bob" || one.State() != task.Running {
		t.Errorf("got the events %s of a task of %s that is %s", got, one.Agent(), one.State())
	}
	again := []core.Event{event(1, 3, core.Text{Text: "x"}), event(1, 4, core.Done{Text: "x"})}
	if !one.Extend(again) || one.Extend(again) {
		t.Error("got no end, or two")
	}
	if got := in.read(); got != "4 over" || !one.IsRecorded() || one.Receipt().Stage != core.StageRecorded {
		t.Errorf("got %s and the receipt %s, want the end, which the owner has stored", got, one.Receipt().Stage)
	}
	if len(h.ended) != 0 || len(h.appended[one.ID()]) != 0 {
		t.Errorf("the host was told of a task that another hub owns: %v", h.appended)
	}
}

// Who is refused makes no hub keep anything of any size, and reads the same at each.
func TestACopyForgetsWhatWasAskedWhenItsOwnerRefusesIt(t *testing.T) {
	s, _, _ := newStore()
	owners, _, _ := newStore()
	one, in := copied(t, s)
	in.read()
	owned := owners.New(core.Principal{ID: "ann"}, policy.Chain{}, one.Request(), core.Trace{}, "")
	owners.Adopt(owned, event(1, 1, core.Opened{Task: one.ID(), From: owned.From(), Request: one.Request()}), nil)
	owned.DropContent()
	owned.Refuse(core.NewFault(core.CodeUnreachable, "nobody is there"))
	ended := one.Extend(owned.Events())
	if got := in.read(); !ended || got != "2 over" {
		t.Errorf("got %s, want the end alone", got)
	}
	if got := one.Request(); got.Content != "" || got.To != core.ToAgent("bob") {
		t.Errorf("got %+v, want the request without its content", got)
	}
	late := &inbox{}
	one.Attach(late, task.Viewer, nil, 0)
	if got := late.read(); got != "1 2 over" {
		t.Errorf("who reads it later got %s, want both events", got)
	}
}

func TestACopyKeepsWhatTheJournalHasLost(t *testing.T) {
	s, _, _ := newStore()
	one, in := copied(t, s)
	in.read()
	one.Extend([]core.Event{event(1, 5, core.Text{Text: "x"})})
	if got := in.read(); got != "gap 2-4 5" {
		t.Errorf("got %s, want the gap told and what follows it", got)
	}
}

// An owner sends events over connections that may be lost, with what it has sent.
func TestACopyTakesNothingBehindAHoleThatItsOwnerMayFill(t *testing.T) {
	text := core.Text{Text: "x"}
	hear := func(one *task.Task, wantLacks bool, seqs ...uint64) {
		t.Helper()
		for i, seq := range seqs {
			ended, lacks := one.Hear([]core.Event{event(1, seq, text)})
			if want := wantLacks && i == 0; ended || lacks != want {
				t.Errorf("event %d: got ended %v and lacks %v, want lacks %v", seq, ended, lacks, want)
			}
		}
	}
	t.Run("the owner has it", func(t *testing.T) {
		s, _, _ := newStore()
		one, in := copied(t, s)
		hear(one, true, 5, 6, 7) // it is asked once
		hear(one, false, 2, 3, 4, 5, 6, 7)
		if got := in.read(); got != "1 2 3 4 5 6 7" {
			t.Errorf("got %s, want all", got)
		}
		hear(one, true, 9) // again
	})
	t.Run("the owner has lost it", func(t *testing.T) {
		s, _, _ := newStore()
		one, in := copied(t, s)
		hear(one, true, 5)
		hear(one, true, 4) // it has a part of it
		hear(one, false, 4, 5)
		if got := in.read(); got != "1 gap 2-3 4 5" {
			t.Errorf("got %s, want the gap told, and what follows it", got)
		}
	})
	t.Run("another life of the owner has less", func(t *testing.T) {
		s, _, _ := newStore()
		one, in := copied(t, s)
		hear(one, true, 5)
		answer := []core.Event{event(2, 7, text), event(2, 8, core.Done{})}
		if after := one.AskAnew(); after != (core.Cursor{}) {
			t.Errorf("got the cursor %s of a remote task that has its request alone, want all to be asked for", after)
		}
		if ended, lacks := one.Hear(answer); ended || !lacks {
			t.Errorf("over the next connection: got ended %v and lacks %v, want that the owner is asked again", ended, lacks)
		}
		if ended, lacks := one.Hear(answer); !ended || lacks {
			t.Errorf("the answer: got ended %v and lacks %v, want the end", ended, lacks)
		}
		if got := in.read(); got != "1 gap 2-6 7 8 over" {
			t.Errorf("got %s, want the gap told, and what follows it", got)
		}
	})
	t.Run("the journal has it", func(t *testing.T) {
		s, _, _ := newStore()
		one, in := copied(t, s)
		hear(one, true, 5)
		one.Extend([]core.Event{one.Events()[0], event(1, 2, text), event(2, 3, core.Done{})})
		if got := in.read(); got != "1 2 3 over" {
			t.Errorf("got %s, want what the journal says", got)
		}
	})
}

func TestAReaderMayBeAheadOfACopy(t *testing.T) {
	s, _, _ := newStore()
	one, _ := copied(t, s)
	in := &inbox{}
	if _, err := one.Watch(in, core.Cursor{Epoch: 1, Seq: 3}, nil); err != nil {
		t.Fatalf("what it has read at another hub: got %v, want it to wait", err)
	}
	text := core.Text{Text: "x"}
	one.Extend([]core.Event{event(1, 2, core.Assigned{Agent: "bob", Attempt: 1}), event(1, 3, text)})
	if got := in.read(); got != "" {
		t.Errorf("got %s, which it has read", got)
	}
	one.Extend([]core.Event{event(1, 4, text)})
	if got := in.read(); got != "4" {
		t.Errorf("got %s, want what follows", got)
	}
	further := &inbox{}
	if _, err := one.Watch(further, core.Cursor{Epoch: 1, Seq: 6}, nil); err != nil {
		t.Fatal(err)
	}
	one.Extend([]core.Event{event(1, 5, text), event(1, 6, text), event(2, 7, core.Failed{Fault: core.NewFault(core.CodeUnreachable, "gone")})})
	if got := further.read(); got != "7 over" {
		t.Errorf("further ahead: got %s, want the end", got)
	}
}

func TestATaskThatIsTakenBackEndsOnceThatIsStored(t *testing.T) {
	s, h, _ := newStore()
	h.behind = true
	one, in := copied(t, s)
	in.read()
	end := event(2, 2, core.Failed{Fault: core.NewFault(core.CodeUnreachable, "gone")})
	if !one.TakeBack("a", end) || one.IsRemote() || one.Owner() != "a" {
		t.Error("got the task of another hub, want this hub's own")
	}
	if got := in.read(); got != "" || one.IsRecorded() {
		t.Errorf("before it is stored: got %s, want no end", got)
	}
	one.SetRecorded(2)
	if got := in.read(); got != "2 over" {
		t.Errorf("once it is stored: got %s, want the end", got)
	}
	if one.TakeBack("a", end) {
		t.Error("a task that has ended was taken back again")
	}
}

func TestACopyKnowsWhatItsOwnerWouldRefuse(t *testing.T) {
	s, _, _ := newStore()
	one, _ := copied(t, s)
	if err := one.Inject(core.Injected{Content: "x"}); core.AsFault(err).Code != core.CodeConflict {
		t.Errorf("context before an agent has it: got %v, want a conflict", err)
	}
	one.Extend([]core.Event{event(1, 2, core.Assigned{Agent: "bob", Attempt: 1}), event(1, 3, core.ApprovalRequested{ID: "1", Name: "rm", Input: "-r", InputSHA256: core.InputDigest("-r")})})
	if err := one.Decide(core.ApprovalDecided{ID: "1", Approved: true, InputSHA256: core.InputDigest("other")}); core.AsFault(err).Code != core.CodeConflict {
		t.Errorf("a decision on another input: got %v, want a conflict", err)
	}
	if err := one.Decide(core.ApprovalDecided{ID: "1", Approved: true}); err != nil {
		t.Errorf("got %v, want the owner to be asked", err)
	}
	if got := one.Approvals(); len(got) != 1 {
		t.Errorf("got %d approvals before the owner has said anything, want 1", len(got))
	}
	one.Extend([]core.Event{event(1, 4, core.ApprovalDecided{ID: "1", Approved: true, By: "eve", InputSHA256: core.InputDigest("-r")})})
	if err := one.Decide(core.ApprovalDecided{ID: "1"}); core.AsFault(err).Code != core.CodeConflict {
		t.Errorf("a second decision: got %v, want a conflict", err)
	}
	one.Extend([]core.Event{event(1, 5, core.Cancelled{})})
	if err := one.Cancel("ann", ""); core.AsFault(err).Code != core.CodeConflict {
		t.Errorf("a cancel behind the end: got %v, want a conflict", err)
	}
}

func TestACopyHasItsRequestBeforeItsCallerExtendsIt(t *testing.T) {
	s, _, _ := newStore()
	const id = core.TaskID("0197f6a0-0000-7000-8000-000000000001")
	first := event(1, 1, core.Opened{Task: id, From: core.Principal{ID: "ann"}, Request: core.Request{Content: "why?"}})
	m := s.Remote(id, first)
	if got := m.From().ID + " " + m.Request().Content; got != "ann why?" {
		t.Errorf("got %q of a remote task that others may see, want who asked for what", got)
	}
	if m.Extend([]core.Event{first, event(1, 2, core.Done{})}); len(m.Events()) != 2 {
		t.Errorf("got %d events, want the first one once", len(m.Events()))
	}
}

func TestWhatTheJournalHasLostOfACopyIsAGap(t *testing.T) {
	s, _, _ := newStore()
	one, in := copied(t, s)
	text := core.Text{Text: "x"}
	one.Extend([]core.Event{event(1, 2, core.Assigned{Agent: "bob", Attempt: 1}), event(1, 3, text), event(1, 4, text), event(1, 5, text)})
	if got := in.read(); got != "1 2 3 4 5" {
		t.Fatalf("got %s", got)
	}
	late := &inbox{}
	one.Attach(late, task.Viewer, nil, 2)
	late.read()
	fault := core.NewFault(core.CodeUnreachable, "gone")
	stored := []core.Event{one.Events()[0], event(1, 2, core.Assigned{Agent: "bob", Attempt: 1}), event(1, 3, text), event(2, 4, core.Failed{Fault: fault})}
	if !one.Extend(stored) {
		t.Error("got no end, want that of the journal")
	}
	if got := in.read(); got != "gap 4-5 4 over" {
		t.Errorf("a reader that had seen 5: got %s, want the gap and the end", got)
	}
	if got := one.Events(); len(got) != 4 || got[3].Epoch != 2 {
		t.Errorf("got the events %+v, want those of the journal", got)
	}
}

func TestACopyForgetsACancelThatTheJournalHasLost(t *testing.T) {
	s, _, _ := newStore()
	one, _ := copied(t, s)
	one.Extend([]core.Event{event(1, 2, core.Assigned{Agent: "bob", Attempt: 1}), event(1, 3, core.CancelRequested{By: "ann"}), event(1, 4, core.ApprovalRequested{ID: "1", Name: "rm"})})
	one.Extend([]core.Event{event(2, 3, core.Retrying{Agent: "bob", Hub: "b"}), event(3, 4, core.Retrying{Agent: "bob", Hub: "c"})})
	if one.IsCancelling() || len(one.Approvals()) > 0 || one.Agent() != "bob" || one.Owner() != "c" {
		t.Errorf("got cancelling %v, approvals %v, agent %q, owner %q, want what was stored alone", one.IsCancelling(), one.Approvals(), one.Agent(), one.Owner())
	}
}
