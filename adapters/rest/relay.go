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

// relay sends the events of the session as they come, until the last one, until the client
// closes the connection or stops reading, or until the hub stops. A response without the end
// of its task was cut: the client can resume at its last cursor.
func (a *api) relay(c call, s *hub.Session, form string, f follow) {
	out := newStream(a.outlet(c.w), form == eventType, f.task == nil)
	_ = out.rc.SetReadDeadline(time.Time{}) // only the end of the connection is read
	setHeaders(c.w, form)
	c.w.Header().Set("X-Accel-Buffering", "no")
	c.w.WriteHeader(http.StatusOK)
	err := out.flush()
	for done := f.nothing; !done && err == nil; {
		var b hub.Batch
		var silent bool
		if b, silent, err = a.next(c.r.Context(), s); err != nil {
			return // the client has gone, or the hub stopped
		}
		switch {
		case silent:
			out.alive()
		case b.Draining != "":
			err = out.control("shutdown", shutdown{b.Draining})
		case b.Gap != nil:
			err = out.control("gap", gap{b.Task.ID(), b.Gap.From, b.Gap.To})
		case b.Task != nil:
			for _, e := range b.Events {
				if err == nil {
					err = out.event(b.Task.ID(), e)
				}
				done = done || f.last(e)
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

// next waits for the next events of the session. It reports silent if there were none for
// KeepAlive.
func (a *api) next(ctx context.Context, s *hub.Session) (b hub.Batch, silent bool, err error) {
	window, cancel := context.WithTimeout(ctx, a.opts.KeepAlive)
	defer cancel()
	b, err = s.Next(window)
	if err != nil && window.Err() != nil && ctx.Err() == nil {
		return b, true, nil
	}
	return b, false, err
}
