package rest

import (
	"cmp"
	"net/http"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// getEvents tells the events of a task, from behind a cursor.
func (a *api) getEvents(c call) error {
	t, err := a.task(c)
	if err != nil {
		return err
	}
	// A client that comes back by itself repeats the address, and says in the header
	// how far it got.
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
	// The state comes before the events: one that says ended has its end among them.
	ended := t.State() == hub.Ended
	events := t.Events()
	last := events[len(events)-1].Cursor()
	f := follow{task: t}
	if !live {
		f.until, f.nothing = last, from == last
	}
	if ended && from == last {
		// This is what makes an EventSource stop coming back.
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	a.relay(c, s, negotiate(c.r, eventType, lineType), f)
	return nil
}

// getAllEvents tells the events of all tasks from now on.
func (a *api) getAllEvents(c call) error {
	s := a.connect(c)
	defer leave(s)
	if err := s.WatchAll(); err != nil {
		return err
	}
	a.relay(c, s, negotiate(c.r, eventType, lineType), follow{})
	return nil
}
