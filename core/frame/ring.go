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
	frameOverhead, noteOverhead = 160, 96
	// maxNotes bounds what one message is said to be: one that becomes more says the beginning.
	maxNotes = 64
	// lostTasks is for how many tasks a Ring knows that frames of them were dropped.
	lostTasks = 64
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
	lost       []core.TaskID
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
func (r *Ring) Queued(ctx context.Context, message any) {
	told, isTold := ctx.Value(telling{}).(note)
	byReader := ctx.Value(reading{}) != nil
	r.mu.Lock()
	defer r.mu.Unlock()
	var notes []note
	switch n := len(r.deliveries); {
	case isTold && told.task != "":
		notes = []note{told}
	case isTold:
	case byReader:
		notes = tasksOf(r.incoming.notes)
	case n > 0:
		notes = r.deliveries[n-1].take()
	}
	if len(notes) > 0 {
		r.sent(message, notes)
	}
}

// sent keeps a message for the peer. Callers hold mu.
func (r *Ring) sent(message any, notes []note) {
	k := &kept{at: time.Now(), direction: Out, message: r.bytesOf(message), notes: notes}
	for i := range k.notes {
		k.notes[i].refused = k.message == nil // the transport has no words for it
	}
	r.add(k)
}

// tasksOf returns the tasks of notes.
func tasksOf(all []note) (tasks []note) {
	for _, n := range all {
		if is := (note{task: n.task}); !slices.Contains(tasks, is) {
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

// Command is Event for a command that is no event.
func (r *Ring) Command(task core.TaskID, name string, refused bool) {
	if r != nil && task != "" {
		r.note(note{task: task, name: name, refused: refused})
	}
}

func (r *Ring) note(n note) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.incoming.message != nil && len(r.incoming.notes) < maxNotes {
		r.incoming.notes = append(r.incoming.notes, n)
	}
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
	for len(r.frames) > 0 && r.bytes+size > r.book.keep {
		r.drop()
	}
	for !r.book.makeRoom(size) {
		if len(r.frames) == 0 {
			r.lose(k)
			k.gone = true
			return
		}
		r.drop()
	}
	if !r.listed {
		r.listed = true
		r.book.add(r)
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
	r.lose(k)
}

// lose remembers that a frame of its tasks is gone. Callers hold mu.
func (r *Ring) lose(k *kept) {
	for _, n := range k.notes {
		if slices.Contains(r.lost, n.task) {
			continue
		}
		if r.lost = append(r.lost, n.task); len(r.lost) > lostTasks {
			r.lost = slices.Delete(r.lost, 0, 1)
		}
	}
}

// release drops all frames and returns how many bytes they had.
func (r *Ring) release() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	bytes := r.bytes
	for _, k := range r.frames {
		k.gone = true
	}
	r.frames, r.bytes = nil, 0
	r.share.Release()
	return bytes
}

// of returns the frames of a task, and whether others of it were dropped.
func (r *Ring) of(task core.TaskID) (all []Frame, lost bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.frames {
		f := Frame{At: k.at, Dialect: r.dialect, Direction: k.direction, Connection: r.connection}
		for _, n := range k.notes {
			if !slices.Contains(f.Tasks, n.task) {
				f.Tasks = append(f.Tasks, n.task)
			}
		}
		if slices.Contains(f.Tasks, task) {
			f.Frame, f.Became = asJSON(k.message), r.book.became(r.dialect, k.direction, k.notes, task)
			all = append(all, f)
		}
	}
	return all, slices.Contains(r.lost, task)
}
