package task

import (
	"iter"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
)

// What an agent asks people, and what they answer, are events of the tasks that it works on. The
// questions themselves are held elsewhere: they outlive neither their asker nor its tasks.

// Ask reports a question that the agent asks people, before it is put to them. It returns the errors of
// [Task.Report].
func (t *Task) Ask(w Worker, q core.QuestionAsked) error { return t.report(w, q, nil) }

// Settle reports how a question of the task was settled, unless the task has ended before: its end has
// settled all.
func (t *Task) Settle(s core.QuestionAnswered) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, open := t.questions[s.ID]; !open || t.remote || t.state == Ended {
		return
	}
	t.append(s, nil)
	delete(t.questions, s.ID)
	t.noteWaits()
}

// asked notes that a question waits for people. Callers hold mu.
func (t *Task) asked(id string) {
	if t.questions == nil {
		t.questions = map[string]struct{}{}
	}
	t.questions[id] = struct{}{}
}

// openQuestions returns the ids of the questions that were not settled, in order.
func openQuestions(events iter.Seq[core.Event]) (open []string) {
	for e := range events {
		switch b := e.Body.(type) {
		case core.QuestionAsked:
			open = append(open, b.ID)
		case core.QuestionAnswered:
			open = slices.DeleteFunc(open, func(id string) bool { return id == b.ID })
		}
	}
	return open
}
