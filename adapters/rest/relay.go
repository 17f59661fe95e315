package rest

import (
	"context"
	"net/http"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// follow says what is to be told of a session's events, and up to where.
type follow struct {
	// task is the one that the session reads; nil when it reads all.
	task *hub.Task
	// until is the event to stop at, short of the end of the task; the zero Cursor
	// is none.
	until core.Cursor
	// nothing says that until was reached before the first event.
	nothing bool
}

// last reports whether the event is the last to be told.
func (f follow) last(e core.Event) bool {
	if f.task == nil {
		return false
	}
	return e.Body.Kind().Ends() || f.until != (core.Cursor{}) && e.Epoch >= f.until.Epoch && e.End() >= f.until.Seq
}

// relay tells what the session reads as it comes, until that is all, the client
// leaves or takes nothing any more, or the hub stops. The response of a task that
// has not ended with its end was cut off: its last cursor is where to go on.
func (a *api) relay(c call, s *hub.Session, form string, f follow) {
	out := newStream(a.outlet(c.w), form == eventType, f.task == nil)
	_ = out.rc.SetReadDeadline(time.Time{}) // nothing more is read, but the client's leaving
	setHeaders(c.w, form)
	c.w.Header().Set("X-Accel-Buffering", "no")
	c.w.WriteHeader(http.StatusOK)
	err := out.flush()
	for done := f.nothing; !done && err == nil; {
		var b hub.Batch
		var silent bool
		if b, silent, err = a.next(c.r.Context(), s); err != nil {
			return // the client left, or the hub stopped
		}
		switch {
		case silent:
			out.alive()
		case b.Draining != "":
			err = out.say("shutdown", shutdown{b.Draining})
		case b.Gap != nil:
			err = out.say("gap", gap{b.Task.ID(), b.Gap.From, b.Gap.To})
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
		a.opts.Log.Info("a reader of events was cut off", "path", c.r.URL.Path, "principal", c.from.ID, "error", err)
	}
}

// next waits for what the session reads next. It reports silent when nothing came
// for so long that the client should hear a sign of life.
func (a *api) next(ctx context.Context, s *hub.Session) (b hub.Batch, silent bool, err error) {
	window, cancel := context.WithTimeout(ctx, a.opts.KeepAlive)
	defer cancel()
	b, err = s.Next(window)
	if err != nil && window.Err() != nil && ctx.Err() == nil {
		return b, true, nil
	}
	return b, false, err
}
