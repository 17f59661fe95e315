package hub

import (
	"slices"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/memory"
	"github.com/dragoman-hub/dragoman/core/task"
)

// broadcast reads the tasks that are opened while somebody follows all of them, once for all live
// feeds: an event is taken from its task, freed of secrets and encoded once, however many look.
// It has no goroutine: whichever feed has read everything takes more. A feed that falls too far
// behind goes on by itself, as one that resumes.
type broadcast struct {
	hub   *Hub
	views views
	ready ready

	mu    sync.Mutex // locked before that of the views, and before ready.mu
	feeds map[*Feed]struct{}
	parts fifo.Queue[part]
	first uint64 // the number of the first part
	count uint64 // how many tasks it has been told of
	share memory.Share
}

// ready is what a broadcast has not taken yet, and who waits for it. It is a [task.Inbox].
type ready struct {
	mu      sync.Mutex // locked after that of a task
	readers fifo.Queue[*task.Reader]
	waiting []*Feed
}

// Bounds of a broadcast, in bytes of events and their encoded form.
const (
	broadcastBytes = 8 << 20  // a feed that is further behind goes on by itself
	broadcastRest  = 64 << 10 // what all have read is kept up to this, so that it is rarely looked for
)

// part is what feeds are shown of a task at a time.
type part struct {
	FeedBatch
	number   uint64 // of the task, in the order in which they were opened
	from     string // the id of the requester
	redacted bool   // it is of that form
	size     int
}

// join makes a feed a reader of every task that is opened from now on. Callers hold Hub.mu.
func (h *Hub) join(f *Feed) {
	b := h.broadcast
	if b == nil {
		b = &broadcast{hub: h, feeds: map[*Feed]struct{}{}, share: memory.Of(h.memory, memory.Sending)}
		h.broadcast = b
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.feeds[f] = struct{}{}
	f.shared, f.joined, f.next = b, b.count, b.first+uint64(b.parts.Len())
}

// leave ends join: the feed gets nothing more from there. Callers hold Hub.mu.
func (h *Hub) leave(f *Feed) {
	b := f.shared
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.feeds, f)
	if len(b.feeds) == 0 && h.broadcast == b {
		h.broadcast = nil
		b.views.close()
		b.share.Release()
	}
}

// opened makes the broadcast a viewer of a new task, in the forms in which its feeds show it: who joins
// later does not read this task here. Callers hold Hub.mu, so tasks come in order.
func (b *broadcast) opened(t *task.Task) {
	b.mu.Lock()
	b.count++
	number := b.count
	forms := map[*task.Task]struct{}{}
	for f := range b.feeds {
		forms[f.sess.formFor(t)] = struct{}{}
	}
	b.mu.Unlock()
	for form := range forms {
		_ = b.views.add(form, func() (*task.Reader, error) { return form.Attach(&b.ready, task.Viewer, number, 0), nil })
	}
}

// Ready implements [task.Inbox].
func (r *ready) Ready(one *task.Reader) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readers.Push(one)
	r.rouse()
	return true
}

// wait has a feed roused once there is something. It reports false if there is already.
func (r *ready) wait(f *Feed) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.readers.Len() > 0 {
		return false
	}
	if !f.waits {
		f.waits = true
		r.waiting = append(r.waiting, f)
	}
	return true
}

// Principal implements [task.Inbox]: all feeds are listed as one reader.
func (r *ready) Principal() core.Principal { return ComponentIdentity("events", "").Principal }

// rouse lets the feeds that wait look again. Callers hold mu.
func (r *ready) rouse() {
	for i, f := range r.waiting {
		f.waits, r.waiting[i] = false, nil
		f.sess.inbox.rouse()
	}
	r.waiting = r.waiting[:0]
}

// next returns the next part for a feed, if there is one; else the feed is roused when there may
// be. It reports late if parts for it are gone.
func (b *broadcast) next(f *Feed) (out FeedBatch, found, late bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, joined := b.feeds[f]; !joined { // its session has ended
		return out, false, false
	}
	for f.next >= b.first {
		parts := b.parts.Items()
		if i := int(f.next - b.first); i < len(parts) { //nolint:gosec // it is a length
			if f.next++; f.wants(&parts[i]) {
				return parts[i].FeedBatch, true, false
			}
		} else if !b.pull() && b.ready.wait(f) {
			return out, false, false
		}
	}
	return out, false, true
}

// pull takes more events from the tasks. It reports false if there are none. Callers hold mu.
func (b *broadcast) pull() bool {
	b.ready.mu.Lock()
	r, ok := b.ready.readers.Pop()
	b.ready.mu.Unlock()
	if !ok {
		return false
	}
	p, ok := r.Take()
	if p.Over {
		b.views.forget(p.Task, r)
	}
	if ok {
		b.add(part{
			FeedBatch: FeedBatch{Task: p.Task.ID(), Events: p.Events, Gap: p.Gap},
			number:    p.Tag.(uint64), from: p.Task.From().ID, redacted: p.Task.IsRedacted(),
		})
	}
	return true
}

// add adds a part, and drops those that all feeds have read or that are too much. Callers hold mu.
func (b *broadcast) add(p part) {
	p.encode()
	b.parts.Push(p)
	b.share.Add(p.size)
	if b.share.Held() > broadcastRest {
		read := b.first + uint64(b.parts.Len())
		for f := range b.feeds {
			read = min(read, f.next)
		}
		for b.parts.Len() > 1 && (b.first < read || b.share.Held() > broadcastBytes) {
			gone, _ := b.parts.Pop()
			b.share.Add(-gone.size)
			b.first++
		}
	}
	b.ready.mu.Lock()
	defer b.ready.mu.Unlock()
	b.ready.rouse()
}

// encode encodes the events of the part, and sets its size. What cannot be encoded is left to
// those who read it.
func (p *part) encode() {
	for _, e := range p.Events {
		p.size += e.Size()
	}
	text, ends := make([]byte, 0, 128*len(p.Events)+p.size), make([]int, 0, len(p.Events))
	for _, e := range p.Events {
		var err error
		if text, err = e.AppendJSON(text); err != nil {
			return
		}
		ends = append(ends, len(text))
	}
	p.size += cap(text)
	p.text, p.ends = text, slices.Clip(ends)
}
