package hub

import (
	"time"

	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/task"
)

// askedFor tells the tasks for which people are asked that they wait. Its methods are called with the lock of
// the book of questions held.
type askedFor struct {
	hub   *Hub
	tasks map[string][]*task.Task // by the question
	next  question.Observer       // may be nil
}

// Asked implements [question.Observer].
func (a *askedFor) Asked(q question.Question) {
	for _, id := range q.Tasks {
		if t := a.hub.tasks.Get(id); t != nil {
			t.AwaitPeople()
			a.tasks[q.ID] = append(a.tasks[q.ID], t)
		}
	}
	if a.next != nil {
		a.next.Asked(q)
	}
}

// Settled implements [question.Observer].
func (a *askedFor) Settled(id string) {
	for _, t := range a.tasks[id] {
		t.AwaitNoMore()
	}
	delete(a.tasks, id)
	if a.next != nil {
		a.next.Settled(id)
	}
}

// patienceWith returns how long an agent that cannot be told to stop may work on a task that has ended: until its
// deadline, but where that is a default no longer than it may be silent.
func (h *Hub) patienceWith(t *task.Task) time.Duration {
	left := max(0, time.Until(t.Deadline()))
	if most := h.limits.Silence; most > 0 && t.HasDefaultDeadline() {
		return min(left, most)
	}
	return left
}

// specifiedQuestionTimeout is how long a question of the tool ask_user waits that names no time, for agents of a
// dialect with a [Identity.FixedDeadline].
const specifiedQuestionTimeout = 60 * time.Second

// questionTimeout returns how long a question of the agent waits that names no time.
func (s *Session) questionTimeout() time.Duration {
	if t := s.hub.limits.QuestionTimeout; !s.identity.FixedDeadline {
		return t
	}
	return min(specifiedQuestionTimeout, s.hub.limits.QuestionTimeout)
}
