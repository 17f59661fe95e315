package hub

import (
	"time"

	"github.com/dragoman-hub/dragoman/core/task"
)

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
