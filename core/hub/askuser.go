package hub

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// The tool by which an agent that declared the capability asks people, as agents of
// the existing Coven gateway know it.
const (
	askUserCapability = "ui"
	maxAskUser        = 300 * time.Second
	maxQuestionBytes  = 64 << 10
)

var askUserTool = tool.Definition{
	Name:        "ask_user",
	Description: "Ask the people who talk with you a question, and wait for what they choose, or say where there is nothing to choose from.",
	InputSchema: schema(`"question":{"type":"string","minLength":1},`+
		`"options":{"type":"array","minItems":1,"maxItems":100,"items":{"type":"object","properties":{"label":{"type":"string","minLength":1},"description":{"type":"string"}},"required":["label"],"additionalProperties":false}},`+
		`"multi_select":{"type":"boolean"},"header":{"type":"string"},`+
		`"timeout_seconds":{"type":"integer","minimum":1,"maximum":300}`, "question"),
	Timeout:  maxAskUser + 10*time.Second,
	Requires: []string{askUserCapability},
}

type askUserInput struct {
	Question       string            `json:"question"`
	Options        []question.Option `json:"options"`
	MultiSelect    bool              `json:"multi_select"`
	Header         string            `json:"header"`
	TimeoutSeconds *int              `json:"timeout_seconds"`
}

// question returns what the input asks, from now on, with the timeout if it names none.
func (in askUserInput) question(timeout time.Duration) (question.Question, error) {
	q := question.Question{
		ID: core.NewID(), Text: in.Question, Header: in.Header, Options: in.Options, Several: in.MultiSelect, Since: time.Now(),
	}
	if err := q.Check(); err != nil {
		return q, core.NewFault(core.CodeInvalid, "invalid input: %s", core.AsFault(err).Message)
	}
	if n := in.TimeoutSeconds; n != nil {
		if timeout = time.Duration(*n) * time.Second; timeout < time.Second || timeout > maxAskUser {
			return q, core.NewFault(core.CodeInvalid, "invalid input: timeout_seconds: want 1 to 300")
		}
	}
	q.Until = q.Since.Add(timeout)
	return q, nil
}

// runAskUser puts the question; the answer comes when somebody gives it.
func runAskUser(s *Session, call string, raw json.RawMessage) (*tool.Result, error) {
	var in askUserInput
	if err := readInput(raw, &in); err != nil {
		return nil, err
	}
	if len(raw) > maxQuestionBytes {
		return nil, core.NewFault(core.CodeTooLarge, "the question has %d bytes, the limit is %d: ask shorter", len(raw), maxQuestionBytes)
	}
	q, err := in.question(s.hub.limits.QuestionTimeout)
	if err != nil {
		return nil, err
	}
	q.Agent = s.agentID()
	asked := question.Request{Question: q, Asker: s.questionPeer(), Ref: call}
	agent := s.root()
	for _, t := range agent.working() {
		asked.Tasks = append(asked.Tasks, question.Task{
			ID: t.ID(), Sources: s.hub.sources(t), Working: func() bool { return !t.HasEnded() && t.Worker() == agent.worker() },
		})
	}
	err = s.hub.questions.Put(asked)
	if s.isClosed() { // maybe before the question was put
		s.hub.questions.Leave(s.questionPeer())
	}
	if errors.Is(err, &core.Fault{Code: core.CodeOverloaded}) {
		s.hub.Count("refused.question")
	}
	return nil, err
}

// sources returns the threads of a task and of those above it, as far as they are in
// memory.
func (h *Hub) sources(t *task.Task) []question.Source {
	var all []question.Source
	for t != nil {
		r := t.Request()
		all = append(all, question.Source{Thread: r.Thread, From: t.From()})
		t = h.tasks.Get(r.Cause)
	}
	return all
}
