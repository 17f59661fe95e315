package pi

import (
	"context"
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// mostTurns is how many of the latest turns of a thread a session begins with that
// joins it.
const mostTurns = 50

// listening is how a session stands to what others ask in its thread. Server.mu guards
// it.
type listening struct {
	joining bool        // it does not know yet what was said there before
	early   []*hub.Task // opened since it began to join
	hearing int         // turns of others in its lane
	// shared says that others have taken part in the conversation, or may have. It is
	// not compacted by itself: that would leave their thread.
	shared bool
}

// joinThread makes a session whose thread others may have talked in already: it
// begins with the latest of that, and goes on with what runs.
func (s *Server) joinThread(x *request, ss *session, cwd string) command.Outcome {
	if with := s.companies[ss.thread]; with != nil {
		for other := range with.sessions {
			if other.key.Scope == ss.key.Scope {
				return command.Failed("Thread " + string(ss.thread) + " is that of session " + other.key.ID + " already: switch to that")
			}
		}
	}
	ss.joining, ss.shared = true, true
	s.attend(ss)
	return x.Work(s.jobs, func(ctx context.Context) command.Outcome {
		turns, err := s.hub.LatestTurns(ctx, everything(), ss.thread, mostTurns)
		s.engine.Lock()
		defer s.engine.Unlock()
		problem := s.checkSession(x, ss.key.ID)
		if err != nil {
			problem = core.AsFault(err).Message
		}
		// What is kept without its beginning does not say whose it is.
		turns = slices.DeleteFunc(turns, func(t *hub.Task) bool { return t.From().ID == "" })
		if slices.ContainsFunc(turns, func(t *hub.Task) bool { return !ss.sees(t) }) {
			problem = "Thread " + string(ss.thread) + " belongs to somebody else"
		}
		if problem != "" {
			s.depart(ss)
			return command.Failed(problem)
		}
		s.register(ss)
		s.beginTree(ss, conversation.New(core.NewID(), ss.key.ID, cwd, ""))
		s.catchUp(ss, turns)
		return s.created(x, ss)
	})
}

// catchUp gives a session what was said in its thread, and lets it hear the rest.
func (s *Server) catchUp(ss *session, turns []*hub.Task) {
	ss.joining = false
	early := ss.early
	ss.early = nil
	if len(turns) > 0 {
		last := turns[len(turns)-1].ID() // ids of tasks are in the order in which they were opened
		early = slices.DeleteFunc(early, func(t *hub.Task) bool { return t.ID() <= last })
	}
	s.choose(ss, turns)
	var past []conversation.Message
	room := s.opts.MaxFileBytes
	running := slices.IndexFunc(turns, func(t *hub.Task) bool { return t.State() != hub.Ended })
	if running < 0 {
		running = len(turns)
	}
	for _, t := range slices.Backward(turns[:running]) {
		told := s.retell(ss, t)
		if room -= int64(conversation.JSONSize(told)); room < 0 {
			break
		}
		past = append(told, past...)
	}
	for _, m := range past {
		ss.file.Append(ss.tree.Say(m))
	}
	if id := ss.agent.Agent(); id != "" {
		ss.add(s.modelChange(id))
	}
	for _, t := range slices.Concat(turns[running:], early) {
		s.listen(ss, t)
	}
}

// choose binds a session that does not say with whom it talks to the agent whose name
// the thread has, or else to the one that answered there last.
func (s *Server) choose(ss *session, turns []*hub.Task) {
	if !ss.agent.IsZero() {
		return
	}
	ids := []core.AgentID{core.AgentID(ss.thread)}
	for _, t := range slices.Backward(turns) {
		ids = append(ids, t.Agent())
	}
	for _, id := range ids {
		if a, ok := s.hub.Agent(id); ok && id != "" {
			ss.agent, ss.model = core.ToAgent(a.ID), new(modelOf(a))
			return
		}
	}
}

// retell returns the messages of a task that has ended.
func (s *Server) retell(ss *session, t *hub.Task) []conversation.Message {
	var v render.View
	v.Begin(s.rendered(ss, t.ID()), nil, 0)
	for _, e := range t.Events() {
		_ = e.Deliver(&v) // a view returns no error
	}
	return append(askedWith(t), v.TakeMessages()...)
}
