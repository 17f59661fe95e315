package pi

import (
	"context"
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// maxTurns is how many of the latest turns of a thread a session begins with that
// joins it.
const maxTurns = 50

// membership is how a session stands to what others ask in its thread.
type membership struct {
	joining       bool         // it does not know yet what was said there before
	early         []*task.Task // opened since it began to join
	othersWaiting int          // turns of others in its lane
	// shared says that others have taken part in the conversation, or may have. It is
	// not compacted by itself: that would leave their thread.
	shared bool
}

// joinThread makes a session whose thread others may have talked in already: it
// begins with the latest of that, and goes on with what runs.
func (x *request) joinThread(ss *session, cwd string) command.Outcome {
	s := x.client.server
	if with := s.threads[ss.thread]; with != nil {
		for other := range with.sessions {
			if other.key.Scope == ss.key.Scope {
				return command.Failed("Thread " + string(ss.thread) + " is that of session " + other.key.ID + " already: switch to that")
			}
		}
	}
	ss.joining, ss.shared = true, true
	ss.followThread()
	return x.Work(s.jobs, func(ctx context.Context) command.Outcome {
		turns, err := s.hub.LatestTurns(ctx, s.root.Identity().Principal, ss.thread, maxTurns)
		s.engine.Lock()
		defer s.engine.Unlock()
		problem := x.checkSession(ss.key.ID)
		if err != nil {
			problem = core.AsFault(err).Message
		}
		// What is kept without its beginning does not say whose it is.
		turns = slices.DeleteFunc(turns, func(t *task.Task) bool { return t.From().ID == "" })
		if slices.ContainsFunc(turns, func(t *task.Task) bool { return !s.hub.MayRead(ss.viewer, t) }) {
			problem = "Thread " + string(ss.thread) + " belongs to somebody else"
		}
		if problem != "" {
			ss.leaveThread()
			return command.Failed(problem)
		}
		s.register(ss)
		ss.beginTree(conversation.New(core.NewID(), ss.key.ID, cwd, ""))
		ss.joinAt(turns)
		return x.created(ss)
	})
}

// joinAt gives a session what was said in its thread, and lets it hear the rest.
func (ss *session) joinAt(turns []*task.Task) {
	s := ss.server
	ss.joining = false
	early := ss.early
	ss.early = nil
	if len(turns) > 0 {
		last := turns[len(turns)-1].ID() // ids of tasks are in the order in which they were opened
		early = slices.DeleteFunc(early, func(t *task.Task) bool { return t.ID() <= last })
	}
	ss.chooseAgent(turns)
	var past []conversation.Message
	room := s.opts.MaxFileBytes
	running := slices.IndexFunc(turns, func(t *task.Task) bool { return t.State() != task.Ended })
	if running < 0 {
		running = len(turns)
	}
	for _, t := range slices.Backward(turns[:running]) {
		told := messagesOfTask(t, ss.rendered(t.ID()))
		if room -= int64(conversation.JSONSize(told)); room < 0 {
			break
		}
		past = append(told, past...)
	}
	for _, m := range past {
		ss.file.Append(ss.tree.AppendMessage(m))
	}
	if id := ss.agent.Agent(); id != "" {
		ss.add(s.modelChange(id))
	}
	for _, t := range slices.Concat(turns[running:], early) {
		ss.queueOthers(t)
	}
}

// chooseAgent binds a session that names no agent to the agent whose name
// the thread has, or else to the one that answered there last.
func (ss *session) chooseAgent(turns []*task.Task) {
	s := ss.server
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

// messagesOfTask returns the messages of a task that has ended.
func messagesOfTask(t *task.Task, rendered render.Task) []conversation.Message {
	var v render.View
	v.Begin(rendered, nil, 0)
	for _, e := range t.Events() {
		_ = e.Deliver(&v) // a view returns no error
	}
	return append(askedWith(t), v.TakeMessages()...)
}
