package pi

import (
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
