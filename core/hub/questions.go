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

// WatchQuestions makes Next return the questions of a conversation, those that are open
// first, and how they end. It replaces the session's view with the same tag.
func (s *Session) WatchQuestions(v question.View) {
	s.hub.questions.Watch(s.peer(), v)
	if s.isClosed() { // maybe before the view was there
		s.hub.questions.Leave(s.peer())
	}
}

// UnwatchQuestions ends the view with the tag.
func (s *Session) UnwatchQuestions(tag any) { s.hub.questions.Unwatch(s.peer(), tag) }

// Questions returns the open questions that the principal may answer, the longest waiting
// first.
func (h *Hub) Questions(p core.Principal) []question.Question {
	all := []question.Question{}
	_ = h.list(p, core.ListQuestions, func() error { // without the right the list is empty
		all = h.questions.List(p)
		return nil
	})
	return all
}

// AnswerQuestion answers a question as the session's principal: see
// [question.Book.Answer].
func (s *Session) AnswerQuestion(r core.Reply) (question.Outcome, error) {
	o, err := s.do(r)
	return o.question, err
}

// Show implements [question.Peer].
func (p *peer) Show(u question.Update) { p.inbox.push(Batch{Question: &u}) }

// Settled implements [question.Peer].
func (p *peer) Settled(call string, o question.Outcome, fault *core.Fault) {
	out := &tool.Result{Fault: fault}
	if fault == nil {
		out = output(o)
	}
	out.Call = call
	p.inbox.push(Batch{Tool: out})
}

// The tool with which an agent that declared the capability asks people, as agents of the
// existing Coven gateway know it.
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

// question returns the question of the input, with the timeout if it names none.
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

// runAskUser puts the question to people. The result follows with their answer.
func runAskUser(s *Session, call string, raw json.RawMessage) (*tool.Result, error) {
	var in askUserInput
	if err := readInput(raw, &in); err != nil {
		return nil, err
	}
	if len(raw) > maxQuestionBytes {
		return nil, core.NewFault(core.CodeTooLarge, "the question has %d bytes, the limit is %d: shorten it", len(raw), maxQuestionBytes)
	}
	q, err := in.question(s.hub.limits.QuestionTimeout)
	if err != nil {
		return nil, err
	}
	q.Agent = s.agentID()
	request := question.Request{Question: q, Asker: s.peer(), Ref: call}
	agent := s.root()
	for _, t := range agent.working() {
		request.Tasks = append(request.Tasks, question.Task{
			ID: t.ID(), Sources: s.hub.sources(t), Working: func() bool { return !t.HasEnded() && t.Worker() == agent.peer() },
		})
	}
	err = s.hub.questions.Put(request)
	if s.isClosed() { // maybe before the question was put
		s.hub.questions.Leave(s.peer())
	}
	if errors.Is(err, &core.Fault{Code: core.CodeOverloaded}) {
		s.hub.Count("refused.question")
	}
	return nil, err
}

// sources returns the threads of a task and of its causes, as far as they are in memory.
func (h *Hub) sources(t *task.Task) []question.Source {
	var all []question.Source
	for t != nil {
		r := t.Request()
		all = append(all, question.Source{Thread: r.Thread, From: t.From()})
		t = h.tasks.Get(r.Cause)
	}
	return all
}
