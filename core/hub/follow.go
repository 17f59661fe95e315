package hub

import "github.com/dragoman-hub/dragoman/core"

// follower is how a session follows a thread: it is shown the tasks that are opened
// there, or only woken.
type follower struct {
	shown bool
	tag   any
}

// Follow makes the session a viewer of every task that is opened in a thread from
// now on and that its principal may read, as [Session.WatchAll] does of all; tag
// comes with their batches. Those that it opens itself are not among them. Notices are
// no part of a thread.
func (s *Session) Follow(id core.ThreadID, tag any) error {
	return s.doing(core.Follow{Thread: id}, func() error {
		s.follow(id, follower{shown: true, tag: tag})
		return nil
	})
}

func (s *Session) follow(id core.ThreadID, f follower) {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.closed {
		return
	}
	all := h.followers[id]
	if all == nil {
		all = map[*Session]follower{}
		h.followers[id] = all
	}
	all[s] = f
	s.follows.put(id, struct{}{})
}

// Unfollow ends that. The tasks that it watches already are watched on.
func (s *Session) Unfollow(id core.ThreadID) {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unfollow(s, id)
}

// unfollow ends the following of one thread. Callers hold mu.
func (h *Hub) unfollow(s *Session, id core.ThreadID) {
	delete(s.follows, id)
	delete(h.followers[id], s)
	if len(h.followers[id]) == 0 {
		delete(h.followers, id)
	}
}

// opensTurn writes a new task into its thread and tells who follows that, but for
// the session that opens it. Callers hold mu.
func (h *Hub) opensTurn(j *job, by *Session) {
	id := j.Thread()
	if !j.IsTurn() {
		return
	}
	h.index.Add(id, j.ID())
	for s, f := range h.followers[id] {
		switch {
		case !f.shown:
			s.inbox.push(Batch{})
		case s != by && h.mayRead(s.identity.Principal, j.From()):
			s.view(j.Task, f.tag)
		}
	}
}
