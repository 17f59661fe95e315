package rest

import (
	"cmp"
	"net/http"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// getEvents sends the events of a task after a cursor.
func (a *api) getEvents(c call) error {
	t, err := a.task(c)
	if err != nil {
		return err
	}
	// A client that reconnects by itself repeats the URL, and has its position in the
	// header.
	from, err := core.ParseCursor(cmp.Or(c.r.Header.Get("Last-Event-ID"), c.r.URL.Query().Get("from")))
	if err != nil {
		return err
	}
	live, err := flag(c.r, "follow", true)
	if err != nil {
		return err
	}
	s := a.connect(c)
	defer leave(s)
	if err := s.Watch(t, from, nil); err != nil {
		return err
	}
	// The state is read before the events, so that an ended task has its end among them.
	ended := t.State() == task.Ended
	events := t.Events()
	last := events[len(events)-1].Cursor()
	f := follow{task: t}
	if !live {
		f.until, f.nothing = last, from == last
	}
	if ended && from == last {
		// This status makes an EventSource stop reconnecting.
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	a.relay(c, negotiate(c.r, eventType, lineType), sourceOf(s, f))
	return nil
}

// getAllEvents sends the events of all tasks, from now on or from a position.
func (a *api) getAllEvents(c call) error {
	s := a.connect(c)
	defer leave(s)
	f, err := s.Feed(cmp.Or(c.r.Header.Get("Last-Event-ID"), c.r.URL.Query().Get("from")))
	if err != nil {
		return err
	}
	if s.Closed() { // refused at once, such as for a quota: as a status, not as an empty stream
		_, err := s.Next(c.r.Context())
		return err
	}
	a.relay(c, negotiate(c.r, eventType, lineType), source{feed: f, next: f.Next})
	return nil
}
