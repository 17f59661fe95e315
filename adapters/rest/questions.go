package rest

import (
	"net/http"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/question"
)

// getQuestions lists the questions of agents that the sender may answer, or sends them as they come.
func (a *api) getQuestions(c call) error {
	if negotiate(c.r, jsonType, eventType) == eventType {
		return a.streamQuestions(c)
	}
	return a.reply(c.w, http.StatusOK, struct {
		Questions []question.Question `json:"questions"`
	}{a.hub.Questions(c.from)})
}

// settled is how a question of a stream ended.
type settled struct {
	ID string `json:"id"`
	question.Outcome
}

// streamQuestions sends the open questions, and then each as it comes and how it ends. Whoever reads
// the stream counts as somebody who is there to answer.
func (a *api) streamQuestions(c call) error {
	s := a.connect(c)
	defer leave(s)
	s.WatchQuestions(question.View{Tag: Name, All: true, For: c.from})
	if s.Closed() { // refused at once, such as for a quota
		_, err := s.Next(c.r.Context())
		return err
	}
	out := newStream(a.outlet(c.w), true, nil)
	_ = out.rc.SetReadDeadline(time.Time{}) // only the end of the connection is read
	setHeaders(c.w, eventType)
	c.w.Header().Set("X-Accel-Buffering", "no")
	c.w.WriteHeader(http.StatusOK)
	for {
		if out.send() != nil {
			return nil // the client has gone
		}
		b, silent, err := next(c.r.Context(), a.opts.KeepAlive, s.Next)
		switch {
		case err != nil:
			return nil // the client has gone, or the hub stopped: the response is cut off
		case silent:
			out.alive()
		case b.Draining != "":
			err = out.control("shutdown", shutdown{b.Draining})
		case b.Question != nil && b.Question.Outcome != nil:
			err = out.control("settled", settled{b.Question.Question.ID, *b.Question.Outcome})
		case b.Question != nil:
			err = out.control("question", b.Question.Question)
		}
		if err != nil {
			return err
		}
	}
}

// answerBody is the body of POST /v1/questions/{id}/answer.
type answerBody struct {
	Selected  []string `json:"selected"`
	Text      string   `json:"custom_text"`
	Dismissed bool     `json:"dismissed"`
}

func (a *api) postAnswer(c call) error {
	var body answerBody
	if err := a.read(c, &body); err != nil {
		return err
	}
	if body.Dismissed && (len(body.Selected) > 0 || body.Text != "") {
		return core.NewFault(core.CodeInvalid, "dismissed: it says that there is no answer, and there is one; leave it out")
	}
	s := a.connect(c)
	defer leave(s)
	outcome, err := s.AnswerQuestion(core.Reply{Question: c.id(), Selected: body.Selected, Text: body.Text, Dismissed: body.Dismissed})
	if err != nil {
		return err
	}
	return a.reply(c.w, http.StatusOK, outcome)
}
