package hub

import (
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/memory"
)

// A registration is what a peer may repeat, and what stays until it is taken back or the session ends: a thread
// that is followed, a conversation whose questions are watched. Each counts in the memory of the hub.
const (
	sessionRegistrations   = 1024
	principalRegistrations = 16 << 10
	registrationBytes      = 1 << 10 // of one, beside its names
)

// registrations are how many there are, by [core.Principal.Account].
type registrations struct {
	mu sync.Mutex
	of map[string]int
}

// registered is what a session has registered. registrations.mu guards it.
type registered struct{ number, bytes int }

// register counts a registration with names of so many bytes. It returns an overloaded Fault beyond the bounds of
// the session, of its principal or of the memory of the hub. A part of the program has its own bounds.
func (s *Session) register(names int) error {
	p, h := s.identity.Principal, s.hub
	if p.Component {
		return nil
	}
	n := registrationBytes + names
	h.registrations.mu.Lock()
	defer h.registrations.mu.Unlock()
	var f *core.Fault
	switch of := h.registrations.of[p.Account()]; {
	case s.registered.number >= sessionRegistrations:
		f = core.NewFault(core.CodeOverloaded, "the connection follows or watches %d conversations: end some of that first", s.registered.number)
	case p.Authenticated && of >= principalRegistrations:
		f = core.NewFault(core.CodeOverloaded, "%s follows or watches %d conversations: end some of that first", p.ID, of)
	case !h.memory.TryTake(memory.Registrations, n):
		h.memory.Refuse()
		f = core.NewFault(core.CodeOverloaded, "the hub holds %d bytes for its peers, its limit is %d (limits.memory): ask again once something has ended", h.memory.Held(), h.memory.Limit())
		f.RetryAfter = core.Seconds(time.Second)
	default:
		h.registrations.add(p, 1)
		s.registered.number++
		s.registered.bytes += n
		return nil
	}
	return f
}

// unregister takes back a registration.
func (s *Session) unregister(names int) { s.takeBack(1, registrationBytes+names) }

// unregisterAll takes back all registrations.
func (s *Session) unregisterAll() {
	s.hub.registrations.mu.Lock()
	all := s.registered
	s.hub.registrations.mu.Unlock()
	s.takeBack(all.number, all.bytes)
}

func (s *Session) takeBack(number, bytes int) {
	p, h := s.identity.Principal, s.hub
	h.registrations.mu.Lock()
	defer h.registrations.mu.Unlock()
	if p.Component || s.registered.number == 0 { // or the session has ended
		return
	}
	s.registered.number -= number
	s.registered.bytes -= bytes
	h.registrations.add(p, -number)
	h.memory.Take(memory.Registrations, -bytes)
}

// add adds to the number of a principal. Callers hold mu.
func (r *registrations) add(p core.Principal, n int) {
	if r.of == nil {
		r.of = map[string]int{}
	}
	if r.of[p.Account()] += n; r.of[p.Account()] == 0 {
		delete(r.of, p.Account())
	}
}
