package task

import (
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
	if !slices.Contains(t.questions, s.ID) || t.remote || t.state == Ended {
		return
	}
	t.append(s, nil)
}
