package pi

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// sharedThread are the sessions that have a thread: as a rule one, and besides it those of
// operators, who may read everybody's.
type sharedThread struct {
	server   *Server
	sessions map[*session]struct{}
}

// othersTurn is a turn in the lane of a session: what somebody else has asked in its
// thread. It is told as a run like any other, when the lane has come to it.
type othersTurn struct {
	server  *Server
	session *session
	thread  core.ThreadID // which the session may have left by then
	task    *task.Task
}

// maxOthers is how many turns of others may wait for a session to tell them.
const maxOthers = 100

// followThread lets the session hear what others ask in its thread.
func (ss *session) followThread() {
	s := ss.server
	with := s.threads[ss.thread]
	if with == nil {
		with = &sharedThread{s, map[*session]struct{}{}}
		s.threads[ss.thread] = with
		_ = s.root.Follow(ss.thread, with) // a part of the program may
	}
	with.sessions[ss] = struct{}{}
}

// leaveThread ends that.
func (ss *session) leaveThread() {
	s := ss.server
	with := s.threads[ss.thread]
	if with == nil {
		return
	}
	delete(with.sessions, ss)
	if len(with.sessions) == 0 {
		delete(s.threads, ss.thread)
		s.root.Unfollow(ss.thread)
	}
}

// opened takes in that somebody else has opened a task in a thread.
func (with *sharedThread) opened(task *task.Task) {
	with.server.root.Unwatch(task) // until it is told
	with.tellOthers(nil, task)
}

// tellOthers lets all sessions of a thread tell a task, but for the one that has opened it.
func (with *sharedThread) tellOthers(own *session, task *task.Task) {
	for ss := range with.sessions {
		switch {
		case ss == own || !ss.server.hub.MayRead(ss.viewer, task):
		case ss.joining:
			ss.early = append(ss.early, task)
		default:
			ss.queueOthers(task)
		}
	}
}

// queueOthers puts a task of somebody else into the lane of the session.
func (ss *session) queueOthers(task *task.Task) {
	s := ss.server
	if ss.othersWaiting >= maxOthers {
		s.count("heard.overrun")
		ss.readers.tell(ss.envelope.Notice(time.Now(), render.NoticeWarning,
			"task "+string(task.ID())+" of "+task.From().ID+" is not shown here: "+strconv.Itoa(maxOthers)+" others wait to be"))
		return
	}
	ss.othersWaiting++
	s.engine.EnqueueTurn(ss.key, &othersTurn{s, ss, ss.thread, task})
}

// Begin begins to tell a turn of somebody else. It reports false of one that the
// session is not concerned with any more.
func (h *othersTurn) Begin() bool {
	s, ss := h.server, h.session
	ss.othersWaiting--
	if ss.deleted || s.engine.Stopped() || ss.thread != h.thread {
		return false
	}
	ss.shared = true
	ss.run = newRun(ss, nil)
	words := askedWith(h.task)
	for _, m := range words {
		ss.run.say(m)
	}
	(&step{run: ss.run, task: h.task, foreign: true}).open(words)
	return true
}

// stopFollowing ends the telling of a run that is somebody else's, if that is what runs
// in the session; the run goes on without it.
func (ss *session) stopFollowing() {
	s := ss.server
	r := ss.run
	if r == nil || !r.last().foreign {
		return
	}
	task := r.last().task
	r.closeRun()
	if len(s.runs[task.ID()]) == 0 {
		s.root.Unwatch(task)
	}
	r.over(command.Outcome{})
}

// askedWith are the messages that a task was asked with, as if its sender had said them
// here; the additional member from says who that is.
func askedWith(task *task.Task) []conversation.Message {
	req := task.Request()
	at := time.Now()
	if e := task.Events(); len(e) > 0 && e[0].Seq == 1 {
		at = e[0].At
	}
	text := req.Content
	var images []core.File
	var files []conversation.Message
	add := func(more string) {
		if text != "" {
			text += "\n"
		}
		text += more
	}
	if len(req.Data) > 0 {
		add(string(req.Data))
	}
	for _, f := range req.Attachments {
		switch {
		case strings.HasPrefix(f.MediaType, "image/"):
			images = append(images, f)
		case conversation.IsText(f):
			add(conversation.FileNote(f) + "\n" + string(f.Data))
		default:
			add(conversation.FileNote(f))
			files = append(files, conversation.FileMessage(f, at.UnixMilli()))
		}
	}
	return append([]conversation.Message{conversation.WithSender(conversation.UserMessage(text, images, at.UnixMilli()), task.From().ID)}, files...)
}

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
