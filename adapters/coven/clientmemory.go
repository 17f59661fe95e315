package coven

import (
	"container/list"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// memory knows the messages of the latest time by the keys that their senders gave
// them, so that one sent again is not said twice. It is bounded: the oldest make
// room. It is safe for concurrent use.
type memory struct {
	most int
	keep time.Duration

	mu     sync.Mutex
	byKey  map[messageKey]*list.Element
	recent *list.List // of *message, oldest first
}

// messageKey names a message: senders do not know of one another's keys.
type messageKey struct{ sender, key string }

type sentMessage struct {
	key    messageKey
	digest [32]byte
	id     string
	at     time.Time
}

func newMemory(most int, keep time.Duration) *memory {
	return &memory{most: most, keep: keep, byKey: map[messageKey]*list.Element{}, recent: list.New()}
}

// once calls send unless a message of that key is known, and remembers it when it
// was sent. It returns the id of the message and whether it was known; an invalid
// Fault when another message has the key; and the error of send, which must not
// wait: one message is sent at a time.
func (m *memory) once(key messageKey, digest [32]byte, send func() (id string, err error)) (id string, known bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for e := m.recent.Front(); e != nil; e = m.recent.Front() {
		oldest := e.Value.(*sentMessage)
		if m.recent.Len() < m.most && now.Sub(oldest.at) < m.keep {
			break
		}
		m.recent.Remove(e)
		delete(m.byKey, oldest.key)
	}
	if e := m.byKey[key]; e != nil {
		before := e.Value.(*sentMessage)
		if before.digest != digest {
			return "", false, core.NewFault(core.CodeInvalid, "idempotency_key was used for another message less than %s ago: choose a new one for each message", m.keep)
		}
		return before.id, true, nil
	}
	if id, err = send(); err != nil {
		return "", false, err
	}
	m.byKey[key] = m.recent.PushBack(&sentMessage{key, digest, id, now})
	return id, false, nil
}
