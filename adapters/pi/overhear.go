package pi

import (
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// company are the sessions that have a thread: as a rule one, and besides it those of
// operators, who may look on at everybody's.
type company struct{ sessions map[*session]struct{} }

// heard is a turn in the lane of a session: what somebody else has asked in its
// thread. It is told as a run like any other, when the lane has come to it.
type heard struct {
	server  *Server
	session *session
	thread  core.ThreadID // which the session may have left by then
	task    *hub.Task
}

// mostHeard is how many turns of others may wait for a session to tell them.
const mostHeard = 100

// attend lets the session hear what others ask in its thread.
func (s *Server) attend(ss *session) {
	with := s.companies[ss.thread]
	if with == nil {
		with = &company{map[*session]struct{}{}}
		s.companies[ss.thread] = with
		s.root.Follow(ss.thread, with)
	}
	with.sessions[ss] = struct{}{}
}

// depart ends that.
func (s *Server) depart(ss *session) {
	with := s.companies[ss.thread]
	if with == nil {
		return
	}
	delete(with.sessions, ss)
	if len(with.sessions) == 0 {
		delete(s.companies, ss.thread)
		s.root.Unfollow(ss.thread)
	}
}

// overhear takes in that somebody else has opened a task in a thread.
func (s *Server) overhear(with *company, task *hub.Task) {
	s.root.Unwatch(task) // until it is told
	s.share(with, nil, task)
}

// share lets all sessions of a thread tell a task, but for the one that has opened it.
func (s *Server) share(with *company, own *session, task *hub.Task) {
	for ss := range with.sessions {
		switch {
		case ss == own || !ss.sees(task):
		case ss.joining:
			ss.early = append(ss.early, task)
		default:
			s.listen(ss, task)
		}
	}
}

// listen puts a task of somebody else into the lane of the session.
func (s *Server) listen(ss *session, task *hub.Task) {
	if ss.hearing >= mostHeard {
		s.count("heard.overrun")
		ss.tell(ss.envelope.Notice(time.Now(), render.NoticeWarning,
			"task "+string(task.ID())+" of "+task.From().ID+" is not shown here: "+strconv.Itoa(mostHeard)+" others wait to be"))
		return
	}
	ss.hearing++
	s.engine.LineUp(ss.key, &heard{s, ss, ss.thread, task})
}

// Begin begins to tell a turn of somebody else. It reports false of one that the
// session is not concerned with any more.
func (h *heard) Begin() bool {
	s, ss := h.server, h.session
	ss.hearing--
	if ss.deleted || s.engine.Stopped() || ss.thread != h.thread {
		return false
	}
	ss.shared = true
	ss.run = newRun(ss, nil)
	words := askedWith(h.task)
	for _, m := range words {
		s.say(ss.run, m)
	}
	s.open(&step{run: ss.run, task: h.task, heard: true}, words)
	return true
}

// stopHearing ends the telling of a run that is somebody else's, if that is what runs
// in the session; the run goes on without it.
func (s *Server) stopHearing(ss *session) {
	r := ss.run
	if r == nil || !r.last().heard {
		return
	}
	task := r.last().task
	s.closeRun(r)
	if len(s.runs[task.ID()]) == 0 {
		s.root.Unwatch(task)
	}
	s.over(r, command.Outcome{})
}

// askedWith are the messages that a task was asked with, as if its sender had said them
// here; the additional member from says who that is.
func askedWith(task *hub.Task) []conversation.Message {
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
	return append([]conversation.Message{conversation.SaidBy(conversation.UserMessage(text, images, at.UnixMilli()), task.From().ID)}, files...)
}
