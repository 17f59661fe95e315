package hub

import (
	"context"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// Feed reads the events of all tasks, and knows how far it has read as a text with which another
// feed continues there, without loss or repetition, also after a restart of the hub. What was
// missed comes from memory and from the journal. One goroutine calls its methods.
type Feed struct {
	sess *Session

	mu sync.Mutex
	at position

	// What follows matters while it catches up.
	live    bool          // it is a watcher: every new task is viewed from its first event
	resumed []resumed     // open tasks of the position, which come first
	unsure  bool          // tasks may be missing that the hub does not know
	missed  []core.TaskID // the next tasks after newest
	pause   int           // batches since the last missed task
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
}

const (
	// missedTasks is how many ids of missed tasks a feed has at a time.
	missedTasks = 256
	// catchUpPause is how many batches of running tasks come at most before the next missed task.
	catchUpPause = 16
)

// Feed makes the session a reader of every task from a position on, which a Feed of this hub gave;
// "" is now, with the tasks that run. What others asked for comes without secrets, with the same
// sequence numbers: see Options.Redact. It returns a not_authorized Fault unless the principal is
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
	return f, s.doFunc(core.WatchAll{}, func() error {
		s.hub.feed(f, from == "")
		return nil
	})
}

// feed begins a feed, at its position or now.
func (h *Hub) feed(f *Feed, now bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := f.sess
	if s.closed {
		return
	}
	s.redactAll()
	s.feed.Store(f)
	if !now {
		f.unsure = f.at.newest != "" && !h.tasks.Lists(f.at.newest)
		return
	}
	f.live = true
	h.watchers[s] = struct{}{}
	f.at.raise(h.tasks.Newest())
	for _, t := range h.tasks.InMemory() {
		if r := s.views.follow(t, s.peer()); r != nil {
			f.at.set(t.ID(), r.Cursor())
		}
	}
}

// began notes that the session views a new task. Hub.mu is held, so tasks come in order.
func (f *Feed) began(id core.TaskID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at.set(id, core.Cursor{Epoch: 1})
}

// ended notes that all of a task was read.
func (f *Feed) ended(id core.TaskID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at.end(id)
}

// Append appends the position after an event, in the order of [Feed.Next]; nothing if so many
// tasks run that it would be too long to send.
func (f *Feed) Append(text []byte, id core.TaskID, e core.Event) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e.Body.Kind().Ends() {
		f.at.end(id)
	} else {
		f.at.set(id, e.Cursor())
	}
	return f.at.append(text)
}

// Position appends the position before the next event, as Append does.
func (f *Feed) Position(text []byte) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at.append(text)
}

// Next waits for news. It returns the context's error, a Fault once the session has ended and
// everything was read, or the error of the journal, after which it may be called again.
func (f *Feed) Next(ctx context.Context) (FeedBatch, error) {
	for {
		if !f.live && f.pause >= catchUpPause {
			if b, told, err := f.catchUp(ctx); told || err != nil {
				return b, err
			}
		}
		b, found, err := f.sess.poll()
		switch {
		case err != nil:
			return FeedBatch{}, err
		case found:
			f.pause++
		case f.live:
			if b, err = f.sess.Next(ctx); err != nil {
				return FeedBatch{}, err
			}
		default:
			if b, told, err := f.catchUp(ctx); told || err != nil {
				return b, err
			}
			continue
		}
		out := FeedBatch{Events: b.Events, Gap: b.Gap, Draining: b.Draining}
		if b.Task != nil {
			out.Task = b.Task.ID()
		}
		return out, nil
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
	if f.unsure {
		f.unsure = false
		return FeedBatch{After: f.at.newest}, true, nil
	}
	if len(f.missed) == 0 {
		h := f.sess.hub
		h.mu.Lock()
		defer h.mu.Unlock()
		if f.missed = h.tasks.After(f.at.newest, missedTasks); len(f.missed) == 0 {
			f.live = true
			if !f.sess.closed {
				h.watchers[f.sess] = struct{}{}
			}
		}
		return b, false, nil
	}
	id := f.missed[0]
	f.began(id)
	if b, told, err = f.resume(ctx, resumed{id, core.Cursor{}}); err == nil {
		f.missed = f.missed[1:]
	}
	return b, told, err
}

// resume views a task after a cursor, in memory or from the journal. It reports whether there is a
// gap to tell, because the task is no longer kept.
func (f *Feed) resume(ctx context.Context, r resumed) (b FeedBatch, told bool, err error) {
	s := f.sess
	t, err := s.hub.tasks.Find(ctx, r.task)
	var reader *task.Reader
	if err == nil {
		if v := s.shown.Load(); v != nil {
			v.resume(s, t, r.from.Seq)
		}
		err = s.views.add(t, func() (_ *task.Reader, err error) {
			reader, err = t.Watch(s.peer(), r.from, nil)
			return reader, err
		})
	}
	switch {
	case err == nil && reader == nil: // its end was read
		if v := s.shown.Load(); v != nil {
			delete(v.again, r.task)
		}
		f.ended(r.task)
	case err == nil:
	case core.AsFault(err).Code == core.CodeUnknownTask, core.AsFault(err).Code == core.CodeInvalid:
		f.ended(r.task)
		return FeedBatch{Task: r.task, Gap: &task.Gap{From: r.from.Seq + 1}}, true, nil
	}
	return b, false, err
}
