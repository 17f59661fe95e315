package frame

import (
	"context"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/memory"
)

// Exchange has the frames of one request over HTTP and of its answer, as a connection of its own. The
// session that the request is for has the Ring of [RingOf]. One goroutine uses an Exchange.
type Exchange struct {
	ring    *Ring
	share   memory.Share // the request and the answer, until they are kept
	request pending
	answer  pending
	tasks   []note // of the request
	taken   bool   // the request was handled
}

// pending is a message that is not whole yet.
type pending struct {
	text []byte
	size int // of the whole frame: text has no more than is kept
}

// bytes returns the message, as text if it is too large.
func (p *pending) bytes() []byte {
	if p.size > len(p.text) {
		return tooLarge(p.size)
	}
	return p.text
}

// ringing is the key of the Ring in the contexts of [Exchange.With].
type ringing struct{}

// RingOf returns the Ring of the request whose context it is; nil if it has none.
func RingOf(ctx context.Context) *Ring {
	r, _ := ctx.Value(ringing{}).(*Ring)
	return r
}

// Exchange begins with a request; nil for a nil Book. clean returns a request without what is shown to
// nobody, and may be nil.
func (b *Book) Exchange(dialect string, clean func([]byte) []byte) *Exchange {
	if b == nil {
		return nil
	}
	x := &Exchange{share: memory.Of(b.memory, memory.Frames)}
	x.ring = b.Connect(dialect, func(message any) []byte {
		p := message.(*pending)
		text := append([]byte{}, p.bytes()...)
		if clean != nil && p == &x.request {
			text = clean(text)
		}
		return text
	})
	x.ring.Receive(&x.request)
	return x
}

// With returns the context of the request.
func (x *Exchange) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, ringing{}, x.ring)
}

// Requested adds a part of the request.
func (x *Exchange) Requested(part []byte) { x.add(&x.request, part) }

// Answered adds a part of the answer, unless it is to a request that belongs to no task.
func (x *Exchange) Answered(part []byte) {
	if x.answer.size > 0 || x.ring.isTold(x.tasks) {
		x.add(&x.answer, part)
	}
}

func (x *Exchange) add(to *pending, part []byte) {
	to.size += len(part)
	if room := x.ring.book.keep - len(to.text); room < len(part) {
		part = part[:max(0, room)]
	}
	to.text = append(to.text, part...)
	x.share.Add(len(part))
}

// Split takes what was answered so far as messages, which cut returns: an answer that is a stream. cut
// also returns what is no whole message yet.
func (x *Exchange) Split(cut func(text []byte) (messages [][]byte, rest []byte)) {
	x.took()
	held := len(x.answer.text)
	defer func() { x.share.Add(len(x.answer.text) - held) }() // what is kept counts in the Ring
	if x.answer.size > held {
		x.keepAnswer(&x.answer)
		x.answer = pending{}
		return
	}
	messages, rest := cut(x.answer.text)
	for _, m := range messages {
		x.keepAnswer(&pending{m, len(m)})
	}
	x.answer = pending{append([]byte{}, rest...), len(rest)}
}

// End ends the Exchange with the rest of the answer.
func (x *Exchange) End() {
	x.took()
	if x.answer.size > 0 {
		x.keepAnswer(&x.answer)
	}
	x.ring.Close()
	x.share.Release()
}

// took says that the request was handled: the rest of the answer may take as long as the task.
func (x *Exchange) took() {
	if x.taken {
		return
	}
	x.taken, x.tasks = true, x.ring.asked()
	x.ring.Received()
}

// keepAnswer keeps a message of the answer.
func (x *Exchange) keepAnswer(m *pending) {
	r := x.ring
	r.mu.Lock()
	defer r.mu.Unlock()
	notes := x.tasks
	if n := len(r.deliveries); n > 0 {
		notes = r.deliveries[n-1].take()
	}
	if len(notes) > 0 {
		k := r.sending(m, notes)
		k.at = time.Now()
		r.add(k)
	}
}

// asked returns the tasks of the message that is handled.
func (r *Ring) asked() []note {
	r.mu.Lock()
	defer r.mu.Unlock()
	return tasksOf(r.incoming.notes)
}

// isTold reports whether what is sent now belongs to a task.
func (r *Ring) isTold(earlier []note) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(earlier) > 0 || len(r.deliveries) > 0 || len(r.incoming.notes) > 0
}

// Tell says that what is sent from here on is an event of a task, unless the session is being told of
// one: for an answer that says how a task has ended.
func (r *Ring) Tell(task core.TaskID, kind core.Kind) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.deliveries) == 0 {
		r.deliveries = append(r.deliveries, &Delivery{ring: r, now: note{task: task, kind: kind}})
	}
}
