package pi

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core/question"
)

// dialogs are the questions that are put to the subscribers of a session, and the
// latest that were settled there.
type dialogs struct {
	open    map[string]question.Question
	settled []string
}

// maxSettled is how many settled questions a session tells from those that never
// were.
const maxSettled = 64

// watchQuestions has the questions of a session's conversation put to it while it has
// subscribers, and those that are open then once more when the first one comes.
func (ss *session) watchQuestions() {
	s := ss.server
	if len(ss.readers) == 0 {
		s.root.UnwatchQuestions(ss)
		clear(ss.dialogs.open)
		return
	}
	s.root.WatchQuestions(question.View{Tag: ss, Thread: ss.thread, Agent: ss.agent.Agent(), For: ss.viewer})
}

// questionChanged takes in a question, or how it ended. Who answered is told to all, that
// nobody did to none (facts, section 7.1).
func (ss *session) questionChanged(q question.Question, given *question.Outcome) {
	_, known := ss.dialogs.open[q.ID]
	switch {
	case len(ss.readers) == 0 || known == (given == nil):
		return
	case given == nil:
		if ss.dialogs.open == nil {
			ss.dialogs.open = map[string]question.Question{}
		}
		ss.dialogs.open[q.ID] = q
		ss.readers.tell(ss.envelope.Dialog(q, q.Until.Sub(q.Since)))
		return
	}
	delete(ss.dialogs.open, q.ID)
	if n := len(ss.dialogs.settled); n == maxSettled {
		ss.dialogs.settled = slices.Delete(ss.dialogs.settled, 0, 1)
	}
	ss.dialogs.settled = append(ss.dialogs.settled, q.ID)
	if given.By.ID != "" {
		ss.readers.tell(ss.envelope.Notice(time.Now(), render.NoticeInfo, q.Text+" answered by "+given.By.ID+": "+given.String()))
	}
}

// askAgain puts what is open to a client that has come late.
func (c *connection) askAgain(ss *session) {
	open := slices.SortedFunc(maps.Values(ss.dialogs.open), func(a, b question.Question) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID))
	})
	for _, q := range open {
		c.push(item{frame: ss.envelope.Dialog(q, time.Until(q.Until))})
	}
}

// reply answers a question (section 18.2).
func (x *request) reply(id string) command.Outcome {
	s := x.client.server
	q, here := x.on.dialogs.open[id]
	if !here {
		if slices.Contains(x.on.dialogs.settled, id) {
			return command.Failed("Request " + id + " already settled")
		}
		for key, ss := range s.sessions {
			if _, there := ss.dialogs.open[id]; there && key.Scope == x.client.Scope {
				return command.Failed("Session ID mismatch for request " + id)
			}
		}
		return command.Failed("No pending UI request with id " + id)
	}
	r, _ := x.Object("response")
	as := s.actAs(x.client.principal)
	defer as.Close(nil)
	method, _ := r.Text("method")
	value, _ := r.Text("value")
	answer := render.DialogAnswer(q, method, value)
	answer.Question = id
	if _, err := as.AnswerQuestion(answer); err != nil {
		return command.Failed("Request " + id + " already settled") // any reply that is made here fits
	}
	return command.Outcome{}
}
