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

// sharedThread has the sessions of a thread: as a rule one, and those of operators, who may
// read every thread.
type sharedThread struct {
	server   *Server
	sessions map[*session]struct{}
}

// sharedTurn is a turn in the lane of a session that shows a task of its thread which somebody
// else opened. Clients see it as a run like any other.
type sharedTurn struct {
	server  *Server
	session *session
	thread  core.ThreadID // the session may have left it meanwhile
	task    *task.Task
}

// maxSharedWaiting is how many shared turns may wait in the lane of a session.
const maxSharedWaiting = 100

// followThread subscribes the session to the tasks that others open in its thread.
func (ss *session) followThread() {
	s := ss.server
	with := s.threads[ss.thread]
	if with == nil {
		with = &sharedThread{s, map[*session]struct{}{}}
		s.threads[ss.thread] = with
		_ = s.root.Follow(ss.thread, with) // a part of the program may follow every thread
	}
	with.sessions[ss] = struct{}{}
}

// leaveThread undoes followThread.
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

// taskOpened handles a task that somebody else opened in the thread.
func (with *sharedThread) taskOpened(task *task.Task) {
	with.server.root.Unwatch(task) // until its turn begins
	with.shareTask(nil, task)
}

// shareTask shows a task in all sessions of the thread except the one that opened it.
func (with *sharedThread) shareTask(own *session, task *task.Task) {
	for ss := range with.sessions {
		form, may := ss.shown(task)
		switch {
		case ss == own || !may:
		case ss.joining:
			ss.openedEarly = append(ss.openedEarly, form)
		default:
			ss.queueShared(form)
		}
	}
}

// queueShared adds a task of somebody else to the lane of the session.
func (ss *session) queueShared(task *task.Task) {
	s := ss.server
	if ss.sharedWaiting >= maxSharedWaiting {
		s.count("heard.overrun")
		ss.subscribers.send(ss.envelope.Notice(time.Now(), render.NoticeWarning,
			"task "+string(task.ID())+" of "+task.From().ID+" is not shown here: "+strconv.Itoa(maxSharedWaiting)+" others wait to be"))
		return
	}
	ss.sharedWaiting++
	ss.noteOwner(task)
	s.engine.EnqueueTurn(ss.key, &sharedTurn{s, ss, ss.thread, task})
}

// Begin shows the task. It reports false if the session has left the thread, or ended.
func (h *sharedTurn) Begin() bool {
	s, ss := h.server, h.session
	ss.sharedWaiting--
	if ss.deleted || s.engine.Stopped() || ss.thread != h.thread {
		return false
	}
	ss.shared = true
	ss.run = newRun(ss, nil)
	asked := requestMessages(h.task)
	for _, m := range asked {
		ss.run.addMessage(m)
	}
	(&step{run: ss.run, task: h.task, foreign: true}).open(asked)
	return true
}

// stopFollowing ends a run that shows the task of somebody else, if that is what runs in the
// session. The task goes on.
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
	r.finish(command.Outcome{})
}

// requestMessages returns the messages of a task's request as if its sender were a user of
// the session. The additional member from names the sender.
func requestMessages(task *task.Task) []conversation.Message {
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

// maxTurns is how many of the latest turns of a thread a session gets that joins it.
const maxTurns = 50

// membership is the state of a session in a thread that it shares.
type membership struct {
	joining       bool         // its earlier turns are still being read
	openedEarly   []*task.Task // tasks opened meanwhile
	sharedWaiting int          // shared turns in its lane
	// others says that it shows what other principals asked.
	others bool
	// shared says that others may have taken part in the conversation. Then it is not
	// compacted automatically, which would leave their thread.
	shared bool
}

// joinThread makes a session of an existing thread. It begins with the latest turns of the
// thread, and shows the tasks that are under way.
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
		// A task whose beginning is no longer kept does not name its requester.
		turns = slices.DeleteFunc(turns, func(t *task.Task) bool { return t.From().ID == "" })
		for i, t := range turns {
			turns[i] = s.hub.FormFor(ss.viewer, t)
		}
		if slices.ContainsFunc(turns, func(t *task.Task) bool { return !s.hub.MayRead(ss.viewer, t) }) {
			problem = "Thread " + string(ss.thread) + " belongs to somebody else"
		}
		if problem != "" {
			ss.leaveThread()
			return command.Failed(problem)
		}
		s.register(ss)
		ss.beginTree(conversation.New(core.NewID(), ss.key.ID, cwd, ""))
		ss.finishJoining(turns)
		return x.sessionCreated(ss)
	})
}

// finishJoining adds the turns of its thread to a session, and shows those under way.
func (ss *session) finishJoining(turns []*task.Task) {
	s := ss.server
	ss.joining = false
	early := ss.openedEarly
	ss.openedEarly = nil
	if len(turns) > 0 {
		last := turns[len(turns)-1].ID() // ids of tasks are in the order of their opening
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
		ss.noteOwner(t)
		told := messagesOfTask(t, ss.renderTask(t.ID()))
		if room -= int64(conversation.JSONSize(told)); room < 0 {
			break
		}
		past = append(told, past...)
	}
	for _, m := range past {
		ss.file.Append(ss.tree.AppendMessage(m))
	}
	if ss.agent.Agent() != "" {
		ss.addEntry(ss.modelChange())
	}
	for _, t := range slices.Concat(turns[running:], early) {
		ss.queueShared(t)
	}
}

// chooseAgent binds a session that names no agent to the agent that the thread is named
// after, or else to the one that answered there last.
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
		if a, ok := s.hub.Agent(ss.viewer, id); ok && id != "" {
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
	return append(requestMessages(t), v.TakeMessages()...)
}
