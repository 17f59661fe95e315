package a2a

import (
	"net/http"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// Canonical is what a signature of a card is over.
var Canonical = canonical

// Views returns how many tasks have a view of their questions.
func (s *Server) Views() int {
	s.people.mu.Lock()
	defer s.people.mu.Unlock()
	return len(s.people.views)
}

// Miss keeps the events of a task from its notifications, and Missed tells them of the gap.
func (s *Server) Miss(t *task.Task) { s.people.session.Unwatch(t) }

func (s *Server) Missed(t *task.Task) {
	s.pushing.Lock()
	p := s.pushesOf[t.ID()]
	s.pushing.Unlock()
	p.notify(hub.Batch{Tag: p, Gap: &task.Gap{From: 1, To: 1}})
}

// Feed writes the events of a task as the items of a stream, with or without cursors.
type Feed struct{ f *feed }

// NewFeed returns a Feed for a task, in the JSON-RPC binding.
func NewFeed(t *task.Task, cursors bool) Feed {
	f := (&call{server: &Server{opts: Options{}.withDefaults()}, r: &http.Request{Header: http.Header{}}, rpc: true, id: []byte("7")}).newFeed(newTranslator(t), place{})
	f.cursors = cursors
	return Feed{f}
}

// Write returns the bytes of an event; they are valid until the next call.
func (f Feed) Write(e core.Event) []byte {
	out := f.f.out.(*events)
	out.buf = out.buf[:0]
	f.f.event(e)
	return out.buf
}
