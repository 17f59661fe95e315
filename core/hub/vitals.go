package hub

import (
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/roster"
)

// Seen notes a sign of life.
func (s *Session) Seen() {
	s.note(func(e *roster.Entry) { e.Load.LastSeen = time.Now() })
}

// SetVitals notes how the agent says it is, which is a sign of life.
func (s *Session) SetVitals(v core.Vitals) {
	s.note(func(e *roster.Entry) { e.Load.LastSeen, e.Vitals = time.Now(), &v })
}

// Missed notes that so many heartbeats of the agent in a row did not come.
func (s *Session) Missed(heartbeats int) {
	s.note(func(e *roster.Entry) {
		if e.Vitals != nil {
			v := *e.Vitals
			v.Missed = heartbeats
			e.Vitals = &v
		}
	})
}

// note changes what the roster has of the agent.
func (s *Session) note(change func(*roster.Entry)) {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if !s.closed {
		h.roster.Change(s.id, change)
	}
}
