package rest

import (
	"context"
	"net/http"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// follow selects the events of a session to send.
type follow struct {
	// task is the task that the session reads; nil if it reads all.
	task *task.Task
	// until is the event after which to stop, before the end of the task; the zero Cursor
	// means none.
	until core.Cursor
	// nothing means that until was reached before the first event.
	nothing bool
}

// last reports whether the event is the last to send.
func (f follow) last(e core.Event) bool {
	if f.task == nil {
		return false
	}
	return e.Body.Kind().Ends() || f.until != (core.Cursor{}) && e.Cursor().Compare(f.until) >= 0
}

// source is where the events of a stream come from: a session that reads one task, or a feed.
type source struct {
	feed *hub.Feed
	follow
	next func(context.Context) (hub.FeedBatch, error)
}

// sourceOf returns the source of one task.
func sourceOf(s *hub.Session, f follow) source {
	return source{follow: f, next: func(ctx context.Context) (out hub.FeedBatch, err error) {
		b, err := s.Next(ctx)
		if err == nil {
			out = hub.FeedBatch{Events: b.Events, Gap: b.Gap, Draining: b.Draining}
			if b.Task != nil {
				out.Task = b.Task.ID()
			}
		}
		return out, err
	}}
}

// relay sends the events of a source as they come, until the last one, until the client
// closes the connection or stops reading, until an error, which it is told, or until the hub stops.
// A response without the end of its task was cut: the client can resume at its last cursor.
func (a *api) relay(c call, form string, from source) {
	out := a.beginStream(c, form, from.feed)
	err := out.send()
	hurry := false // the hub is stopping
	for done := from.nothing; !done && err == nil; {
		var b hub.FeedBatch
		var silent bool
		if b, silent, err = a.next(c.r.Context(), from.next); err != nil {
			if !hurry && c.r.Context().Err() == nil { // else the client has gone, or was told that the hub stops
				a.fail(c, out, err)
			}
			return
		}
		if silent {
			out.alive()
			err = out.send()
			continue
		}
		var draining bool
		done, draining, err = out.batches(b, from)
		hurry = hurry || draining
		if err == nil {
			err = out.send()
		}
		if from.feed != nil && from.feed.Live() && !hurry && !gather(c.r.Context()) {
			return
		}
	}
	if err != nil {
		a.hub.Count("rest.cut")
		a.opts.Log.Info("a stream of events was cut off", "path", c.r.URL.Path, "principal", c.from.ID, "error", err)
	}
}

// beginStream sends the head of a response with events.
func (a *api) beginStream(c call, form string, feed *hub.Feed) *stream {
	out := newStream(a.outlet(c.w), form == eventType, feed)
	_ = out.rc.SetReadDeadline(time.Time{}) // only the end of the connection is read
	setHeaders(c.w, form)
	c.w.Header().Set("X-Accel-Buffering", "no")
	if feed != nil && !out.sse { // else the first event has it
		c.w.Header().Set("Last-Event-ID", string(feed.Position(nil)))
	}
	c.w.WriteHeader(http.StatusOK)
	out.start()
	return out
}

// batches adds a batch, and those of a feed that are there already while they fit into one write. done says that the
// last event is among them; draining, that the hub is stopping.
func (out *stream) batches(b hub.FeedBatch, from source) (done, draining bool, err error) {
	for more := true; more && err == nil; {
		done, err = out.batch(b, from.follow)
		draining = draining || b.Draining != ""
		if more = false; from.feed != nil && len(out.buf) < streamBytes {
			b, more = from.feed.More()
		}
	}
	return done, draining, err
}

// fail tells the client of a stream why there is nothing more, such as a journal that cannot be read.
func (a *api) fail(c call, out *stream, err error) {
	if cause := internal(err); cause != nil {
		a.opts.Log.Error("a stream of events failed", "path", c.r.URL.Path, "principal", c.from.ID, "error", cause)
	}
	if err := out.control("error", problemOf(err)); err == nil {
		_ = out.send() // the client may have gone
	}
}

// gather lets events come together for one write: a stream of all tasks that is written for each
// of them costs the hub more than the tasks. It reports false if the client has gone.
func gather(ctx context.Context) bool {
	t := time.NewTimer(gatherTime)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// gatherTime is how long a stream of all tasks that was just written waits before it is written again.
const gatherTime = 20 * time.Millisecond

// next waits for the next events of a source. It reports silent if there were none for
// KeepAlive.
func (a *api) next(ctx context.Context, from func(context.Context) (hub.FeedBatch, error)) (b hub.FeedBatch, silent bool, err error) {
	window, cancel := context.WithTimeout(ctx, a.opts.KeepAlive)
	defer cancel()
	b, err = from(window)
	if err != nil && window.Err() != nil && ctx.Err() == nil {
		return b, true, nil
	}
	return b, false, err
}
