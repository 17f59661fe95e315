package frame

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/memory"
)

const (
	// frameOverhead and noteOverhead estimate what a frame takes beside its bytes.
	frameOverhead, noteOverhead = 160, 128
	// ringOverhead estimates what a Ring takes beside its frames: it bounds how many small ones are kept.
	ringOverhead = 768
	// maxNotes bounds what one message is said to be: one that becomes more says the beginning.
	maxNotes = 64
)

// Ring has the latest frames of one connection. It is safe for concurrent use; a nil Ring keeps
// nothing.
type Ring struct {
	book                *Book
	dialect, connection string // connection is "" before the first frame
	encode              func(any) []byte

	mu         sync.Mutex
	listed     bool // in the book
	closed     bool
	frames     []*kept // the oldest first
	bytes      int
	share      memory.Share
	incoming   incoming
	deliveries []*Delivery // that are under way, the latest last
}

// kept is a frame that is kept.
type kept struct {
	at        time.Time
	direction Direction
	message   []byte // nil if there was none
	notes     []note
	gone      bool // the ring does not have it any more
}

func (k *kept) size() int { return len(k.message) + frameOverhead + len(k.notes)*noteOverhead }

// incoming is the message that the reader of the connection handles.
type incoming struct {
	at      time.Time
	message any // nil while it handles none
	notes   []note
}

// Receive says that the reader of the connection begins to handle a message. The message must not
// change until Received.
func (r *Ring) Receive(message any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.incoming.at, r.incoming.message = time.Now(), message
}

// Received says that the reader has handled the message.
func (r *Ring) Received() {
	r.mu.Lock()
	in := r.incoming
	r.incoming = incoming{notes: in.notes[:0:0]}
	r.mu.Unlock()
	if len(in.notes) > 0 {
		message := r.bytesOf(in.message)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.add(&kept{at: in.at, direction: In, message: message, notes: in.notes})
	}
}

// reading is the key of the contexts of [Reading], telling that of the note in those of
// [Ring.Telling].
type (
	reading struct{}
	telling struct{}
)

// Reading returns the context of the reader of a connection: what is queued with it is an answer to
// the message that it handles.
func Reading(ctx context.Context) context.Context { return context.WithValue(ctx, reading{}, true) }

// Telling returns a context with which an agent, or else a requester or reader, is told of an event of
// a task: what is queued with it is that event. A zero kind is none, and what is queued for no task is
// not kept.
func (r *Ring) Telling(ctx context.Context, task core.TaskID, agent bool, kind core.Kind) context.Context {
	if r == nil {
		return ctx
	}
	return context.WithValue(ctx, telling{}, note{task: task, agent: agent, kind: kind})
}

// Queued says that a message is queued for the peer: with a context of [Ring.Telling] or [Reading], or
// else by whoever delivers what the hub says. It must not change any more.
func (r *Ring) Queued(ctx context.Context, message any) { r.Queue(r.Outgoing(ctx, message)) }

// Outgoing is a message for the peer that may still have to wait for room.
type Outgoing struct{ kept *kept }

// Outgoing returns a message that is about to be queued, for [Ring.Queue]. It must not change any more.
func (r *Ring) Outgoing(ctx context.Context, message any) Outgoing {
	notes := r.outgoing(ctx)
	if len(notes) == 0 {
		return Outgoing{}
	}
	return Outgoing{r.sending(message, notes)}
}

func (r *Ring) outgoing(ctx context.Context) []note {
	told, isTold := ctx.Value(telling{}).(note)
	byReader := ctx.Value(reading{}) != nil
	r.mu.Lock()
	defer r.mu.Unlock()
	switch n := len(r.deliveries); {
	case isTold && told.task == "":
		return nil
	case isTold:
		return []note{told}
	case byReader:
		return tasksOf(r.incoming.notes)
	case n > 0:
		return r.deliveries[n-1].take()
	}
	return nil
}

// sending returns a message for the peer.
func (r *Ring) sending(message any, notes []note) *kept {
	k := &kept{direction: Out, message: r.bytesOf(message), notes: notes}
	for i := range k.notes {
		k.notes[i].refused = k.notes[i].refused || k.message == nil // the transport has no words for it
	}
	return k
}

// Queue says that a message is queued now.
func (r *Ring) Queue(o Outgoing) {
	if o.kept == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	o.kept.at = time.Now()
	r.add(o.kept)
}

// tasksOf returns the tasks of notes.
func tasksOf(all []note) (tasks []note) {
	for _, n := range all {
		if is := (note{task: n.task, private: n.private}); !slices.Contains(tasks, is) {
			tasks = append(tasks, is)
		}
	}
	return tasks
}

// Event says that the message under way is an event of a task: from its agent, or from a requester
// or reader of it. seq is its number in the task, and zero if that is not known. A refused one did not become an event.
func (r *Ring) Event(task core.TaskID, agent bool, kind core.Kind, seq uint64, refused bool) {
	if r != nil && task != "" {
		r.note(note{task: task, agent: agent, kind: kind, seq: seq, refused: refused})
	}
}

// Command is Event for a command that is no event: a call of a tool of the hub or of a pack. It and its
// answer are private: they may name what its caller sees and the readers of the task do not.
func (r *Ring) Command(task core.TaskID, name string, refused bool) {
	if r != nil && task != "" {
		r.note(note{task: task, name: name, refused: refused, private: true})
	}
}

func (r *Ring) note(n note) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.incoming.message != nil {
		r.incoming.notes = noted(r.incoming.notes, n)
	}
}

// noted adds a note. Of a message that becomes more than maxNotes every task is noted all the same, for
// only those who may read all may see the message.
func noted(all []note, n note) []note {
	if len(all) < maxNotes {
		return append(all, n)
	}
	if n = (note{task: n.task, private: n.private}); slices.ContainsFunc(all, func(other note) bool { return other.task == n.task && (other.private || !n.private) }) {
		return all
	}
	return append(all, n)
}

// Close ends the Ring with its connection. What it has is kept for a while.
func (r *Ring) Close() {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.closed = true
	bytes := r.bytes
	r.mu.Unlock()
	r.book.end(r, bytes)
}

// Reopen continues a Ring that was closed, for the next connection of the same session.
func (r *Ring) Reopen() {
	if r == nil {
		return
	}
	listed := r.book.reopen(r)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed, r.listed = false, listed
}

// bytesOf returns a copy of a message.
func (r *Ring) bytesOf(message any) []byte {
	if r.encode != nil {
		return r.encode(message)
	}
	b, _ := message.([]byte)
	return slices.Clone(b)
}

// add keeps a frame. Callers hold mu.
func (r *Ring) add(k *kept) {
	if k.gone = r.closed; k.gone {
		return
	}
	if n := len(k.message); k.size() > r.book.keep {
		k.message = tooLarge(n)
	}
	size := k.size()
	for len(r.frames) > 0 && r.bytes+size > r.book.keep+ringOverhead {
		r.drop()
	}
	for !r.book.makeRoom(size) {
		if len(r.frames) == 0 {
			r.book.lose(k)
			k.gone = true
			return
		}
		r.drop()
	}
	if !r.listed {
		r.listed = true
		r.book.add(r)
		r.bytes += ringOverhead
		r.share.Add(ringOverhead)
	}
	r.frames, r.bytes = append(r.frames, k), r.bytes+size
	r.share.Add(size)
}

// tooLarge returns what stands for a message of n bytes.
func tooLarge(n int) []byte {
	return fmt.Appendf(nil, "%q", fmt.Sprintf("[%d bytes, more than frames.keep leaves room for]", n))
}

// drop drops the oldest frame. Callers hold mu.
func (r *Ring) drop() {
	k := r.frames[0]
	r.frames[0], k.gone = nil, true
	r.frames = r.frames[1:]
	r.bytes -= k.size()
	r.share.Add(-k.size())
	r.book.lose(k)
}

// release drops all frames and returns how many bytes they had.
func (r *Ring) release() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	bytes := r.bytes
	for _, k := range r.frames {
		k.gone = true
		r.book.lose(k)
	}
	r.frames, r.bytes = nil, 0
	r.share.Release()
	return bytes
}

// of returns copies of the frames of a task: what they say is looked at without the lock, which the reader
// and the senders of the connection need.
func (r *Ring) of(task core.TaskID) (all []kept) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.frames {
		if slices.ContainsFunc(k.notes, func(n note) bool { return n.task == task }) {
			is := *k
			is.notes = slices.Clone(k.notes)
			all = append(all, is)
		}
	}
	return all
}

// frame returns a frame as it is shown for a task.
func (r *Ring) frame(k *kept, task core.TaskID) Frame {
	f := Frame{
		At: k.at, Dialect: r.dialect, Direction: k.direction, Connection: r.connection,
		Frame: asJSON(k.message), Became: r.book.became(r.dialect, k.direction, k.notes, task),
	}
	for _, n := range k.notes {
		f.Private = f.Private || n.private
		for _, id := range n.tasks() {
			if !slices.Contains(f.Tasks, id) {
				f.Tasks = append(f.Tasks, id)
			}
		}
	}
	return f
}
