package coven

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

// The tool by which an agent that declared the capability asks people a question, as
// agents of the existing gateway know it.
const (
	askPack       = "people"
	askTool       = "ask_user"
	askCapability = "ui"

	askTimeout     = 60 * time.Second
	mostAskTimeout = 300 * time.Second
)

const askSchema = `{"type":"object","properties":{` +
	`"question":{"type":"string","minLength":1},` +
	`"options":{"type":"array","minItems":1,"maxItems":100,"items":{"type":"object","properties":{"label":{"type":"string","minLength":1},"description":{"type":"string"}},"required":["label"],"additionalProperties":false}},` +
	`"multi_select":{"type":"boolean"},"header":{"type":"string"},` +
	`"timeout_seconds":{"type":"integer","minimum":1,"maximum":300}},` +
	`"required":["question","options"],"additionalProperties":false}`

// asked is the input of the tool, and given its output.
type asked struct {
	Question string `json:"question"`
	Options  []struct {
		Label       string  `json:"label"`
		Description *string `json:"description"`
	} `json:"options"`
	MultiSelect    bool    `json:"multi_select"`
	Header         *string `json:"header"`
	TimeoutSeconds int     `json:"timeout_seconds"`
}

type given struct {
	Answered   bool     `json:"answered"`
	Selected   []string `json:"selected,omitempty"`
	CustomText string   `json:"custom_text,omitempty"`
	Reason     string   `json:"reason,omitempty"`
}

// questions are those that agents wait with, and the streams on which they are put.
type questions struct {
	mu      sync.Mutex
	asker   *hub.Session // nil while nobody can ask
	open    map[string]*question
	readers map[*reader]struct{}
}

type question struct {
	execution string
	agent     core.AgentID
	event     *wire.ClientStreamEvent
	to        map[string]bool // the principals to whom it was put
	timer     *time.Timer
}

// AskPeople offers agents the tool ask_user, whose questions are put to who listens to
// a conversation with the agent, and answered by AnswerQuestion. It returns when ctx
// ends or the hub stops, or with the Fault for which the tool cannot be offered.
func (s *ClientService) AskPeople(ctx context.Context) error {
	as := s.hub.Connect(hub.Peer{Principal: core.Principal{ID: askPack, Dialect: Name}, Dialect: Name})
	defer as.Close(nil)
	err := as.Provide(askPack, []hub.PackTool{{
		Tool: hub.Tool{
			Name: askTool, Description: "Ask the people who talk with you a question, and wait for what they choose.",
			InputSchema: json.RawMessage(askSchema), Timeout: mostAskTimeout + 10*time.Second,
		},
		Capabilities: []string{askCapability},
	}})
	if err != nil {
		return err
	}
	qs := &s.questions
	qs.mu.Lock()
	qs.asker = as
	qs.mu.Unlock()
	defer func() {
		qs.mu.Lock()
		defer qs.mu.Unlock()
		for id, q := range qs.open {
			q.timer.Stop()
			delete(qs.open, id)
		}
		qs.asker = nil
	}()
	for {
		b, err := as.Next(ctx)
		if err != nil {
			return nil //nolint:nilerr // it was told to end
		}
		if b.Execute == nil {
			continue
		}
		if err := qs.put(b.Execute); err != nil {
			_ = as.AnswerTool(b.Execute.ID, nil, core.AsFault(err)) // a conflict: it has waited too long
		}
	}
}

// put puts a question to everybody who listens to its agent.
func (qs *questions) put(e *hub.Execution) error {
	var in asked
	if err := core.DecodeJSON(e.Input, core.JSONLimits{}, &in); err != nil {
		return core.NewFault(core.CodeInvalid, "invalid input: %s", err)
	}
	wait := askTimeout
	if in.TimeoutSeconds > 0 {
		wait = min(time.Duration(in.TimeoutSeconds)*time.Second, mostAskTimeout)
	}
	id := core.NewID()
	m := &wire.UserQuestionRequest{
		AgentId: utf8Of(string(e.Agent)), QuestionId: id, Question: in.Question, MultiSelect: in.MultiSelect, Header: in.Header,
		TimeoutSeconds: int32(wait / time.Second),
	}
	for _, o := range in.Options {
		m.Options = append(m.Options, &wire.QuestionOption{Label: o.Label, Description: o.Description})
	}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := &question{
		execution: e.ID, agent: e.Agent, to: map[string]bool{},
		event: &wire.ClientStreamEvent{Timestamp: timestamp(time.Now()), Payload: &wire.ClientStreamEvent_UserQuestion{UserQuestion: m}},
	}
	for r := range qs.readers {
		q.offer(r)
	}
	if len(q.to) == 0 {
		return core.NewFault(core.CodeUnsupported, "failed to send question: no connected clients for agent %s", e.Agent)
	}
	qs.open[id] = q
	q.timer = time.AfterFunc(wait, func() { qs.settle(id, given{Reason: "timeout"}) })
	return nil
}

// offer puts a question on a stream, if the conversation is with the agent that asks.
// A stream that has more of them than it takes is left out.
func (q *question) offer(r *reader) {
	if with, _ := r.agent.Load().(core.AgentID); with != q.agent && core.AgentID(r.key) != q.agent {
		return
	}
	m := proto.Clone(q.event).(*wire.ClientStreamEvent)
	m.ConversationKey = utf8Of(r.key)
	select {
	case r.asked <- m:
		q.to[r.principal.ID] = true
	default:
	}
}

// attach lets a stream have the questions that are open, and those to come.
func (qs *questions) attach(r *reader) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	qs.readers[r] = struct{}{}
	for _, q := range qs.open {
		q.offer(r)
	}
}

func (qs *questions) detach(r *reader) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	delete(qs.readers, r)
}

// settle answers the agent, and reports whether it still waited.
func (qs *questions) settle(id string, a given) bool {
	qs.mu.Lock()
	q, as := qs.open[id], qs.asker
	delete(qs.open, id)
	qs.mu.Unlock()
	if q == nil || as == nil {
		return false
	}
	q.timer.Stop()
	output, err := json.Marshal(a)
	if err != nil {
		panic(err) // texts always marshal
	}
	return as.AnswerTool(q.execution, output, nil) == nil
}

// AnswerQuestion implements the service. The first answer counts.
func (s *ClientService) AnswerQuestion(ctx context.Context, r *wire.AnswerQuestionRequest) (*wire.AnswerQuestionResponse, error) {
	p, err := s.opts.Principal(ctx)
	switch {
	case err != nil:
		return nil, err
	case r.GetAgentId() == "":
		return nil, errInvalid("agent_id required")
	case r.GetQuestionId() == "":
		return nil, errInvalid("question_id required")
	}
	if problem := s.questions.check(p, r); problem != "" {
		return &wire.AnswerQuestionResponse{Error: &problem}, nil
	}
	if !s.questions.settle(r.GetQuestionId(), given{Answered: true, Selected: r.GetSelected(), CustomText: r.GetCustomText()}) {
		return &wire.AnswerQuestionResponse{Error: proto.String(noQuestion(r))}, nil
	}
	return &wire.AnswerQuestionResponse{Success: true}, nil
}

func noQuestion(r *wire.AnswerQuestionRequest) string {
	return "no pending question with ID " + r.GetQuestionId()
}

// check says why an answer does not count, or nothing. The question stays open.
func (qs *questions) check(p core.Principal, r *wire.AnswerQuestionRequest) string {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.open[r.GetQuestionId()]
	if q == nil || !q.to[p.ID] {
		return noQuestion(r)
	}
	m := q.event.GetUserQuestion()
	switch {
	case m.GetAgentId() != r.GetAgentId():
		return fmt.Sprintf("question %s is not one of agent %s", r.GetQuestionId(), r.GetAgentId())
	case len(r.GetSelected()) == 0 && r.GetCustomText() == "":
		return "at least one selection or custom_text is required"
	case len(r.GetSelected()) > 1 && !m.GetMultiSelect():
		return "one selection is allowed"
	}
	for _, label := range r.GetSelected() {
		if !slices.ContainsFunc(m.GetOptions(), func(o *wire.QuestionOption) bool { return o.GetLabel() == label }) {
			return fmt.Sprintf("%q is none of the options", label)
		}
	}
	return ""
}
