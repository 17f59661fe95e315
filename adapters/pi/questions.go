package pi

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
	"github.com/dragoman-hub/dragoman/core"
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
		ss.readers.tell(dialogFrame(ss.envelope, q, q.Until.Sub(q.Since)))
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
		c.push(item{frame: dialogFrame(ss.envelope, q, time.Until(q.Until))})
	}
}

// dialogMethod is the dialog that a question is told as: what is chosen from is a
// select. Pi has none for several choices; they are typed, like a text.
func dialogMethod(q question.Question) string {
	if len(q.Options) > 0 && !q.Several {
		return "select"
	}
	return "input"
}

// dialogFrame is the event that asks (section 18.1).
func dialogFrame(e render.Envelope, q question.Question, timeout time.Duration) []byte {
	title := q.Text
	if q.Header != "" {
		title = q.Header + ": " + title
	}
	if q.Several {
		for i, o := range q.Options {
			title += "\n" + strconv.Itoa(i+1) + ". " + optionText(o)
		}
	}
	return e.Event(2*len(title)+512, func(b []byte) []byte {
		b = wire.AppendString(append(b, `{"type":"extension_ui_request","requestId":`...), q.ID)
		b = wire.AppendString(append(b, `,"method":`...), dialogMethod(q))
		b = wire.AppendString(append(b, `,"title":`...), title)
		switch {
		case q.Several:
			b = append(b, `,"placeholder":"numbers or names, separated by commas"`...)
		case len(q.Options) > 0:
			b = append(b, `,"options":[`...)
			for i, o := range q.Options {
				if i > 0 {
					b = append(b, ',')
				}
				b = wire.AppendString(b, optionText(o))
			}
			b = append(b, ']')
		}
		return append(strconv.AppendInt(append(b, `,"timeout":`...), timeout.Milliseconds(), 10), '}')
	})
}

// optionText is how an option is shown; the specification has but a text for it.
func optionText(o question.Option) string {
	if o.Description == "" {
		return o.Label
	}
	return o.Label + ": " + o.Description
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
	answer := replyOf(q, r)
	answer.Question = id
	if _, err := as.AnswerQuestion(answer); err != nil {
		return command.Failed("Request " + id + " already settled") // any reply that is made here fits
	}
	return command.Outcome{}
}

// replyOf reads a response. One to another method than was asked, and one without a
// value, dismiss the question (facts, section 7.1).
func replyOf(q question.Question, r command.Command) core.Reply {
	method, _ := r.Text("method")
	value, _ := r.Text("value")
	if value = strings.TrimSpace(value); method != dialogMethod(q) || value == "" {
		return core.Reply{Dismissed: true}
	}
	if label, ok := chosen(q, value); ok {
		return core.Reply{Selected: []string{label}}
	}
	if !q.Several {
		return core.Reply{Text: value}
	}
	var picked core.Reply
	var rest []string
	for word := range strings.SplitSeq(value, ",") {
		switch label, ok := chosen(q, strings.TrimSpace(word)); {
		case ok && !slices.Contains(picked.Selected, label):
			picked.Selected = append(picked.Selected, label)
		case !ok && strings.TrimSpace(word) != "":
			rest = append(rest, strings.TrimSpace(word))
		}
	}
	if picked.Text = strings.Join(rest, ", "); picked.Text == "" && len(picked.Selected) == 0 {
		return core.Reply{Dismissed: true}
	}
	return picked
}

// chosen returns the label of the option that the text means: as it was shown, by
// its label in any case, or where several are typed by its number.
func chosen(q question.Question, text string) (string, bool) {
	i := slices.IndexFunc(q.Options, func(o question.Option) bool { return text == optionText(o) || strings.EqualFold(text, o.Label) })
	if n, err := strconv.Atoi(text); i < 0 && q.Several && err == nil {
		i = n - 1
	}
	if i < 0 || i >= len(q.Options) {
		return "", false
	}
	return q.Options[i].Label, true
}
