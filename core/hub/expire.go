package hub

import (
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// expired is why a session ends whose principal is nobody any more.
func expired() *core.Fault {
	return core.NewFault(core.CodeUnauthenticated, "Token has expired")
}

// expire ends the session once what its principal showed is good no longer.
func (s *Session) expire() {
	if until := s.identity.Principal.Until; !until.IsZero() {
		s.expiry = time.AfterFunc(time.Until(until), func() { s.Close(expired()) })
	}
}

// takenBack is why a session ends whose principal is nobody any more before his time.
func takenBack() *core.Fault {
	return core.NewFault(core.CodeUnauthenticated, "the token was taken back")
}

// Expel ends the sessions of all authenticated principals that are no longer known as
// what they are, and those that such a principal, let in before, begins later.
func (h *Hub) Expel(known func(p core.Principal) bool) {
	var gone []*Session
	h.mu.Lock()
	h.known = known
	for s := range h.sessions {
		if p := s.identity.Principal; p.Authenticated && !known(p) {
			gone = append(gone, s)
		}
	}
	h.mu.Unlock()
	for _, s := range gone {
		s.Close(takenBack())
	}
}
