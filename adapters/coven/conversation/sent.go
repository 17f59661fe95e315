package conversation

import (
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/dedup"
)

// sentMessages holds the ids of recent messages by sender and idempotency key, so that a
// message that is sent again opens no second task. It is safe for concurrent use.
type sentMessages struct {
	keep time.Duration

	mu  sync.Mutex
	ids *dedup.Memory[string, [32]byte, string] // by sender and key
}

func newSentMessages(most int, keep time.Duration) *sentMessages {
	return &sentMessages{keep: keep, ids: dedup.New[string, [32]byte](dedup.Options[string, string]{All: most, Age: keep})}
}

// once calls send unless it knows a message of that sender and key, and remembers the
// message if send succeeds. It returns the id of the message and whether it was known; an
// invalid Fault when the key belongs to a message with another digest; and the error of
// send, which must not block: one message is sent at a time.
func (m *sentMessages) once(sender, key string, digest [32]byte, send func() (id string, err error)) (id string, known bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch before, verdict := m.ids.Begin(sender, key, digest, ""); verdict {
	case dedup.Settled:
		return before, true, nil
	case dedup.Conflict:
		return "", false, core.NewFault(core.CodeInvalid, "idempotency_key was used for another message less than %s ago: choose a new one for each message", m.keep)
	}
	if id, err = send(); err != nil {
		m.ids.Forget(sender, key)
		return "", false, err
	}
	m.ids.Settle(sender, key, id)
	return id, false, nil
}
