package hub

import "github.com/dragoman-hub/dragoman/core"

// Sight is a conversation that a session looks at: questions asked in it are put
// there.
type Sight struct {
	// Tag names it among those of the session, and comes with each question.
	Tag any
	// Thread is what is looked at, Agent with whom it is as far as that is known, and
	// For who looks.
	Thread core.ThreadID
	Agent  core.AgentID
	For    core.Principal
}

// Asking is a question that is put to a session, or the news of how it ended.
type Asking struct {
	Question Question
	Tag      any
	// Given is nil while the question is open.
	Given *Given
}

// place is a sight of a session.
type place struct {
	sess *Session
	tag  any
}

// LookAt makes Next return the questions that are asked in a conversation, first
// those that are open, and how they end. It replaces what the session looked at under
// the same tag.
func (s *Session) LookAt(at Sight) {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.closed {
		return
	}
	qs := &h.questions
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if qs.sights[s] == nil {
		qs.sights[s] = map[any]Sight{}
	}
	qs.sights[s][at.Tag] = at
	for _, q := range qs.sorted() {
		in, with := qs.sees(at, q)
		if in || with && q.anywhere {
			q.show(s, at.Tag)
		}
	}
}

// LookAway ends what LookAt began under the tag.
func (s *Session) LookAway(tag any) {
	qs := &s.hub.questions
	qs.mu.Lock()
	defer qs.mu.Unlock()
	delete(qs.sights[s], tag)
	for _, q := range qs.open {
		delete(q.shown, place{s, tag})
	}
}

// sees reports whether a question is asked in the conversation that is looked at, or
// else at least by the agent that it is with.
func (qs *questions) sees(at Sight, q *asked) (in, with bool) {
	for _, src := range q.within {
		may := qs.hub.rules.MayRead(at.For, src.from)
		in = in || may && src.thread == at.Thread
		with = with || may && q.Agent == at.Agent
	}
	return in, with || len(q.within) == 0 && q.Agent == at.Agent
}

// show puts a question to a session, once.
func (q *asked) show(s *Session, tag any) {
	p := place{s, tag}
	if _, before := q.shown[p]; before {
		return
	}
	q.shown[p] = struct{}{}
	s.inbox.pushAsking(&Asking{Question: q.Question, Tag: tag})
}
