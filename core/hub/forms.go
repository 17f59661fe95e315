package hub

import (
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/redact"
	"github.com/dragoman-hub/dragoman/core/task"
)

// FormFor returns the form of a task in which lists and streams show it to a principal: as it was said to
// who asked, and redacted to everybody else. Only [Hub.Task], which opens one task by its id, gives others
// what was said. A part of the program gets that too, and calls FormFor for those to whom it shows the task.
func (h *Hub) FormFor(p core.Principal, t *task.Task) *task.Task {
	if h.redact == nil || seesAsSaid(p, t.From().ID) {
		return t
	}
	return t.Redacted()
}

// seesAsSaid reports whether lists and streams show a principal what a requester asked, and the answer, as
// they were said.
func seesAsSaid(p core.Principal, requester string) bool {
	return p.Component || p.ID == requester
}

// Redactor implements [task.Host].
func (h host) Redactor() *redact.Redactor {
	if h.redact == nil {
		return nil
	}
	return h.redact()
}

// formFor is [Hub.FormFor] for the session.
func (s *Session) formFor(t *task.Task) *task.Task { return s.hub.FormFor(s.identity.Principal, t) }
