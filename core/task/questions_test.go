package task_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

func TestTheEndOfATaskSettlesItsQuestions(t *testing.T) {
	s, _, _ := newStore()
	one := openRequest(s, core.Request{To: core.ToAny()})
	w := assign(one)
	for _, id := range []string{"1", "2", "3"} {
		askPeople(t, one, w, id)
	}
	one.Settle(core.QuestionAnswered{ID: "2", Answered: true, Text: "left", By: "ann"})
	one.Settle(core.QuestionAnswered{ID: "2", Reason: core.QuestionTimedOut}) // it was settled
	one.Settle(core.QuestionAnswered{ID: "4", Reason: core.QuestionTimedOut}) // it was never asked
	one.End(core.Cancelled{})
	one.Settle(core.QuestionAnswered{ID: "1", Answered: true, Text: "too late", By: "ann"})
	wantKinds(t, one, "opened", "assigned", "question_asked", "question_asked", "question_asked", "question_answered", "question_answered", "question_answered", "cancelled")
	log := one.Log()
	for i, want := range map[int]core.QuestionAnswered{6: {ID: "1", Reason: core.QuestionTaskEnded}, 7: {ID: "3", Reason: core.QuestionTaskEnded}} {
		if got := log.At(i).Body.(core.QuestionAnswered); got.ID != want.ID || got.Reason != want.Reason || got.Answered {
			t.Errorf("event %d: got %+v, want %+v", i, got, want)
		}
	}
}

func TestOnlyTheAgentOfATaskAsksInIt(t *testing.T) {
	s, _, _ := newStore()
	one := openRequest(s, core.Request{To: core.ToAny()})
	w := assign(one)
	wantFault(t, "another agent", one.Ask(&worker{}, core.QuestionAsked{ID: "1"}), core.CodeNotAuthorized)
	wantFault(t, "an agent that says so itself", one.Report(w, core.QuestionAsked{ID: "1"}, nil), core.CodeInvalid)
	wantFault(t, "an agent that answers itself", one.Report(w, core.QuestionAnswered{ID: "1"}, nil), core.CodeInvalid)
	one.End(core.Cancelled{})
	wantFault(t, "after the end", one.Ask(w, core.QuestionAsked{ID: "1"}), core.CodeConflict)
	wantKinds(t, one, "opened", "assigned", "cancelled")
}

func TestACopyKnowsForHowLongPeopleAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, _ := newStoreWith(patient())
		due := time.Now().Add(30 * time.Minute)
		one := s.Remote("1", core.Event{Seq: 1, Epoch: 1, At: time.Now(), Body: core.Opened{Task: "1", DefaultDeadline: true, Request: core.Request{To: core.ToAny(), Deadline: due}}})
		one.Extend([]core.Event{event(1, 2, core.Assigned{Agent: "bob", Attempt: 1}), event(1, 3, core.QuestionAsked{ID: "1"})})
		pass(10 * time.Minute)
		one.Extend([]core.Event{event(1, 4, core.QuestionAnswered{ID: "1", Answered: true, Text: "left", By: "ann"})})
		pass(10 * time.Minute)
		if got := one.Deadline().Sub(due); got != 10*time.Minute {
			t.Errorf("got a deadline that moved by %s, want 10m", got)
		}
	})
}
