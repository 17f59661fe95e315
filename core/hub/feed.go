package hub

import (
	"context"
	"sync/atomic"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// Feed reads the events of all tasks, and knows how far it has read as a text with which another
// feed continues there, without loss or repetition, also after a restart of the hub. What was
// missed comes from memory and from the journal; what is opened once nothing is missing is read
// together with the other feeds. One goroutine calls its methods.
type Feed struct {
	sess *Session
	at   position

	// What follows matters while it catches up.
	live    bool          // it has joined the broadcast, or its session has ended
	resumed []resumed     // open tasks of the position, which come first
	unsure  core.TaskID   // it was told that the hub does not know what came after this task
	missed  []core.TaskID // the next tasks after newest
	pause   int           // batches since the last missed task
	asks    bool          // the other hubs of the cluster are to be asked what this one was not told
	began   *began        // in a cluster, of a feed that began now; nil once they were asked
	misses  atomic.Bool   // this hub was not told of some tasks: the others are to be asked again

	// What follows matters once it is live. Hub.mu guards shared and joined, which the reader of the
	// feed alone changes.
	shared *broadcast
	joined uint64 // the tasks after as many as this come from there, others from the session
	next   uint64 // the number of the next part; broadcast.mu guards it
	waits  bool   // it is in ready.waiting; ready.mu guards it
}

// FeedBatch is what [Feed.Next] returns: events, a gap, or that the hub is stopping.
type FeedBatch struct {
	Task   core.TaskID
	Events []core.Event
	// Gap says that a part of the task is gone and will not come. If To is zero it goes to the
	// end of the task.
	Gap *task.Gap
	// After is not empty if the hub cannot know what was opened after this task, or what
	// became of it, until the next one that the feed returns.
	After    core.TaskID
	Draining string

	text []byte // the JSON forms of the events, if they are shared; read only
	ends []int  // where each ends
}

// AppendJSON appends the stable JSON form of the event with an index, which may have been encoded
// for all feeds.
func (b *FeedBatch) AppendJSON(text []byte, i int) ([]byte, error) {
	if b.ends == nil {
		return b.Events[i].AppendJSON(text)
	}
	from := 0
	if i > 0 {
		from = b.ends[i-1]
	}
	return append(text, b.text[from:b.ends[i]]...), nil
}

const (
	// missedTasks is how many ids of missed tasks a feed has at a time.
	missedTasks = 256
	// catchUpPause is how many batches of running tasks come at most before the next missed task.
	catchUpPause = 16
)

// Feed makes the session a reader of every task from a position on, which a Feed of this hub gave;
// "" is now, with the tasks that run. What others asked for comes redacted: see [Hub.FormFor]. It returns a not_authorized Fault unless the principal is
// an operator, and an invalid Fault for a text that is no position. The session is not used for
// anything else.
func (s *Session) Feed(from string) (*Feed, error) {
	f := &Feed{sess: s, at: newPosition()}
	if from != "" {
		var err error
		if f.at, f.resumed, err = parsePosition(from); err != nil {
			return nil, err
		}
	}
	f.at.cluster = s.hub.remote != nil
	f.asks = f.at.cluster
	err := s.doFunc(core.WatchAll{}, func() error {
		s.hub.feed(f, from == "")
		return nil
	})
	if err == nil {
		err = s.recheckAll()
	}
	return f, err
}

// feed begins a feed, at its position or now.
func (h *Hub) feed(f *Feed, now bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := f.sess
	if s.closed {
		return
	}
	s.feed.Store(f)
	if !now {
		return
	}
	f.live = true
	h.join(f)
	f.at.raise(h.tasks.Newest())
	for l, place := range h.tasks.Lines() {
		f.at.setLine(l, place)
	}
	if f.asks {
		f.began = h.begunBy(&f.at)
	}
	for _, t := range h.tasks.InMemory() {
		if r := s.views.follow(s.formFor(t), s.peer()); r != nil {
			f.at.set(t.ID(), r.Cursor())
		}
	}
}

// isOwn reports whether the tasks of a requester are shown as they are.
func (f *Feed) isOwn(from string) bool {
	return seesAsSaid(f.sess.identity.Principal, from)
}

// wants reports whether the feed shows a part of the broadcast.
func (f *Feed) wants(p *part) bool {
	return p.number > f.joined && p.redacted == (f.sess.hub.redact != nil && !f.isOwn(p.from))
}

// Append appends the position after an event, in the order of [Feed.Next]. It has at most
// [MaxPosition] bytes: if so many tasks run that it would have more, whoever resumes there is told
// of some tasks again.
func (f *Feed) Append(text []byte, id core.TaskID, e core.Event) []byte {
	if e.Body.Kind().Ends() {
		f.at.end(id)
	} else {
		f.at.set(id, e.Cursor())
	}
	return f.at.append(text)
}

// MaxPosition is how long a position is at most, in bytes.
const MaxPosition = headChars + mostOpen*openChars

// Position appends the position before the next event, as Append does.
func (f *Feed) Position(text []byte) []byte { return f.at.append(text) }

// Next waits for news. It returns the context's error, a Fault once the session has ended, or the
// error of the journal, after which it may be called again.
func (f *Feed) Next(ctx context.Context) (FeedBatch, error) {
	for {
		if b, told, err := f.catchUpFirst(ctx); told || err != nil {
			return b, err
		}
		switch b, found, err := f.poll(); {
		case found || err != nil:
			f.pause++
			return b, err
		case f.live:
			select {
			case <-f.sess.inbox.wake:
			case <-ctx.Done():
				return FeedBatch{}, context.Cause(ctx)
			}
		default:
			if b, told, err := f.catchUp(ctx); told || err != nil {
				return b, err
			}
		}
	}
}

// catchUpFirst catches up where that does not wait until there is no news.
func (f *Feed) catchUpFirst(ctx context.Context) (b FeedBatch, told bool, err error) {
	if f.began != nil || f.live && len(f.resumed) > 0 {
		b, told, err = f.catchUpRunning(ctx)
	}
	if !told && err == nil && !f.live && f.pause >= catchUpPause {
		b, told, err = f.catchUp(ctx)
	}
	return b, told, err
}

// More returns what is ready, as Next does but without waiting; false if nothing is, or if Next
// has to look for it.
func (f *Feed) More() (FeedBatch, bool) {
	if !f.live && f.pause >= catchUpPause {
		return FeedBatch{}, false
	}
	f.pause++
	b, found, _ := f.poll() // Next returns the error
	return b, found
}

// Live reports whether all that was missed has been read.
func (f *Feed) Live() bool { return f.live }

// poll returns what is ready, or why the session has ended.
func (f *Feed) poll() (FeedBatch, bool, error) {
	b, found, err := f.sess.poll()
	if err != nil {
		return FeedBatch{}, false, err
	}
	if found {
		out := FeedBatch{Events: b.Events, Gap: b.Gap, Draining: b.Draining}
		if b.Task != nil {
			out.Task = b.Task.ID()
		}
		return out, true, nil
	}
	if f.live && f.shared != nil {
		out, found, late := f.shared.next(f)
		if late || f.misses.Load() { // what is missing comes before what was found
			f.fallBack()
			return FeedBatch{}, false, nil
		}
		return out, found, nil
	}
	return FeedBatch{}, false, nil
}

// fallBack makes a feed that is too far behind the others resume at its position. It still reads
// the tasks up to joined by itself.
func (f *Feed) fallBack() {
	h := f.sess.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leave(f)
	f.live, f.shared = false, nil
	for i, o := range f.at.open {
		if !f.sess.views.has(o.id) {
			f.resumed = append(f.resumed, resumed{o.id, f.at.cursor(i)})
		}
	}
}

// catchUp views the next missed task, or goes live once there is none. It may wait for the journal.
// It reports whether there is something to tell.
func (f *Feed) catchUp(ctx context.Context) (b FeedBatch, told bool, err error) {
	f.pause = 0
	if len(f.resumed) > 0 {
		if b, told, err = f.resume(ctx, f.resumed[0]); err == nil {
			f.resumed = f.resumed[1:]
		}
		return b, told, err
	}
	h := f.sess.hub
	if f.misses.Swap(false) || f.asks {
		f.asks = false
		if !h.askUnread(ctx, &f.at) && f.doubts() {
			return FeedBatch{After: f.unsure}, true, nil
		}
	}
	if len(f.missed) == 0 {
		h.mu.Lock()
		defer h.mu.Unlock()
		if f.misses.Load() {
			return b, false, nil
		}
		if !f.at.isListed(h.tasks) && f.doubts() {
			return FeedBatch{After: f.unsure}, true, nil
		}
		if f.missed = h.tasks.Unread(f.at.floor(), f.at.hasRead, missedTasks); len(f.missed) == 0 {
			f.live = true
			if !f.sess.closed {
				h.join(f)
			}
		}
		return b, false, nil
	}
	id := f.missed[0]
	f.at.set(id, core.Cursor{Epoch: 1})
	if b, told, err = f.resume(ctx, resumed{id, core.Cursor{}}); err == nil {
		f.missed = f.missed[1:]
	}
	return b, told, err
}

// doubts notes that the hub does not know what came after the position. It reports whether that is to
// be told.
func (f *Feed) doubts() bool {
	after := f.at.after()
	isSame := f.unsure != "" && f.at.newest == "" // though places rise while it reads
	if after == "" || after == f.unsure || isSame {
		return false
	}
	f.unsure = after
	return true
}

// resume views a task after a cursor, in memory or from the journal. It reports whether there is a
// gap to tell, because the task is no longer kept.
func (f *Feed) resume(ctx context.Context, r resumed) (b FeedBatch, told bool, err error) {
	s := f.sess
	t, err := s.hub.find(ctx, r.task)
	var reader *task.Reader
	if err == nil {
		t = s.formFor(t)
		err = s.views.add(t, func() (_ *task.Reader, err error) {
			reader, err = t.Watch(s.peer(), r.from, nil)
			return reader, err
		})
	}
	switch {
	case err == nil && reader == nil: // its end was read
		f.at.end(r.task)
	case err == nil:
	case core.AsFault(err).Code == core.CodeUnknownTask, core.AsFault(err).Code == core.CodeInvalid:
		f.at.end(r.task)
		return FeedBatch{Task: r.task, Gap: &task.Gap{From: r.from.Seq + 1}}, true, nil
	}
	return b, false, err
}
