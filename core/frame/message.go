package frame

import (
	"slices"

	"github.com/dragoman-hub/dragoman/core"
)

// Message is a message that the reader of a connection has passed on, for what it becomes once the reader
// handles another. One goroutine at a time uses it; a nil Message does nothing.
type Message struct {
	ring    *Ring
	message any
	kept    *kept // added to the ring with the first event
}

// Later returns the message that the reader handles; nil for a nil Ring. It must not change any more.
func (r *Ring) Later() *Message {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return &Message{ring: r, message: r.incoming.message, kept: &kept{at: r.incoming.at, direction: In}}
}

// Event is [Ring.Event] for the message.
func (m *Message) Event(task core.TaskID, agent bool, kind core.Kind, seq uint64, refused bool) {
	if m == nil || task == "" {
		return
	}
	r, k, n := m.ring, m.kept, note{task: task, agent: agent, kind: kind, seq: seq, refused: refused}
	text := r.bytesOf(m.message)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(k.notes) > 0 {
		r.noteKept(k, n)
		return
	}
	k.message, k.notes = text, []note{n}
	r.add(k)
}

// noteKept adds a note to a frame that is kept already. Callers hold mu.
func (r *Ring) noteKept(k *kept, n note) {
	if k.gone || r.closed || len(k.notes) >= maxNotes || slices.Contains(k.notes, n) {
		return
	}
	k.notes = append(k.notes, n)
	r.bytes += noteOverhead
	r.share.Add(noteOverhead)
}
