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
	return e.Body.Kind().Ends() || f.until != (core.Cursor{}) && e.Epoch >= f.until.Epoch && e.End() >= f.until.Seq
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
// closes the connection or stops reading, or until the hub stops. A response without the end
// of its task was cut: the client can resume at its last cursor.
func (a *api) relay(c call, form string, from source) {
	out := newStream(a.outlet(c.w), form == eventType, from.feed)
	_ = out.rc.SetReadDeadline(time.Time{}) // only the end of the connection is read
	setHeaders(c.w, form)
	c.w.Header().Set("X-Accel-Buffering", "no")
	if from.feed != nil {
		c.w.Header().Set("Last-Event-ID", string(from.feed.Position(nil)))
	}
	c.w.WriteHeader(http.StatusOK)
	out.start()
	err := out.send()
	for done := from.nothing; !done && err == nil; {
		var b hub.FeedBatch
		var silent bool
		if b, silent, err = next(c.r.Context(), a.opts.KeepAlive, from.next); err != nil {
			return // the client has gone, or the hub stopped
		}
		switch {
		case silent:
			out.alive()
		case b.Draining != "":
			err = out.control("shutdown", shutdown{b.Draining})
		case b.After != "":
			err = out.control("gap", gap{After: b.After})
		case b.Gap != nil:
			err = out.control("gap", gap{Task: b.Task, From: b.Gap.From, To: b.Gap.To})
		default:
			for _, e := range b.Events {
				if err == nil {
					err = out.event(b.Task, e)
				}
				done = done || from.last(e)
			}
		}
		if err == nil {
			err = out.send()
		}
	}
	if err != nil {
		a.hub.Count("rest.cut")
		a.opts.Log.Info("a stream of events was cut off", "path", c.r.URL.Path, "principal", c.from.ID, "error", err)
	}
}

// next waits for what comes next. It reports silent if there was nothing for keepAlive.
func next[T any](ctx context.Context, keepAlive time.Duration, from func(context.Context) (T, error)) (b T, silent bool, err error) {
	window, cancel := context.WithTimeout(ctx, keepAlive)
	defer cancel()
	b, err = from(window)
	if err != nil && window.Err() != nil && ctx.Err() == nil {
		return b, true, nil
	}
	return b, false, err
}
