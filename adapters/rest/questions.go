package rest

import (
	"encoding/json"
	"net/http"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/question"
)

// getQuestions lists the questions of agents that the sender may answer.
func (a *api) getQuestions(c call) error {
	thread := core.ThreadID(c.r.URL.Query().Get("thread"))
	if len(thread) > core.MaxIDBytes {
		return core.NewFault(core.CodeInvalid, "?thread=: want at most %d bytes, got %d", core.MaxIDBytes, len(thread))
	}
	open, missing := a.hub.ReadQuestions(c.from, thread)
	return a.reply(c.w, http.StatusOK, struct {
		Questions []question.Question `json:"questions"`
		Missing   []string            `json:"missing,omitempty"`
	}{open, missing})
}

// answerBody is the body of POST /v1/questions/{id}/answer.
type answerBody struct {
	Selected  []string        `json:"selected"`
	Text      string          `json:"custom_text"`
	Content   json.RawMessage `json:"content"`
	Dismissed bool            `json:"dismissed"`
}

func (a *api) postAnswer(c call) error {
	var body answerBody
	if err := a.read(c, &body); err != nil {
		return err
	}
	if body.Dismissed && (len(body.Selected) > 0 || body.Text != "" || len(body.Content) > 0 && string(body.Content) != "null") {
		return core.NewFault(core.CodeInvalid, "dismissed: it says that there is no answer, and there is one; leave it out")
	}
	s := a.connect(c)
	defer leave(s)
	outcome, err := s.AnswerQuestion(c.r.Context(), core.Reply{Question: c.id(), Selected: body.Selected, Text: body.Text, Content: body.Content, Dismissed: body.Dismissed})
	if err != nil {
		return err
	}
	return a.reply(c.w, http.StatusOK, outcome)
}
