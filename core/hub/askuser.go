package hub

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// The tool by which an agent that declared the capability asks people, as agents of
// the existing Coven gateway know it.
const (
	askUserCapability = "ui"
	maxAskUser        = 300 * time.Second
	maxOptions        = 100
	maxQuestionBytes  = 64 << 10
)

var askUserTool = Tool{
	Name:        "ask_user",
	Description: "Ask the people who talk with you a question, and wait for what they choose, or say where there is nothing to choose from.",
	InputSchema: schema(`"question":{"type":"string","minLength":1},`+
		`"options":{"type":"array","minItems":1,"maxItems":100,"items":{"type":"object","properties":{"label":{"type":"string","minLength":1},"description":{"type":"string"}},"required":["label"],"additionalProperties":false}},`+
		`"multi_select":{"type":"boolean"},"header":{"type":"string"},`+
		`"timeout_seconds":{"type":"integer","minimum":1,"maximum":300}`, "question"),
	Timeout:  maxAskUser + 10*time.Second,
	requires: []string{askUserCapability},
}

type askUserInput struct {
	Question       string   `json:"question"`
	Options        []Option `json:"options"`
	MultiSelect    bool     `json:"multi_select"`
	Header         string   `json:"header"`
	TimeoutSeconds *int     `json:"timeout_seconds"`
}

// question is what the input asks, from now on.
func (in askUserInput) question(wait time.Duration) (Question, error) {
	q := Question{
		ID: core.NewID(), Text: in.Question, Header: in.Header, Options: in.Options, Several: in.MultiSelect, Tasks: []core.TaskID{}, Since: time.Now(),
	}
	invalid := func(text string) (Question, error) {
		return q, core.NewFault(core.CodeInvalid, "invalid input: %s", text)
	}
	switch {
	case q.Text == "":
		return invalid("question: missing; say what is asked")
	case in.Options != nil && len(in.Options) == 0:
		return invalid("options: want at least one, or leave them out and the answer is a text")
	case len(in.Options) > maxOptions:
		return invalid("options: want at most 100")
	case slices.ContainsFunc(in.Options, func(o Option) bool { return o.Label == "" }):
		return invalid("options: each wants a label")
	case in.MultiSelect && len(in.Options) == 0:
		return invalid("multi_select: there are no options to select")
	}
	if n := in.TimeoutSeconds; n != nil {
		if wait = time.Duration(*n) * time.Second; wait < time.Second || wait > maxAskUser {
			return invalid("timeout_seconds: want 1 to 300")
		}
	}
	q.Until = q.Since.Add(wait)
	return q, nil
}

// check returns an invalid Fault for a reply that does not fit.
func (q *Question) check(r Reply) error {
	switch {
	case r.Dismissed:
		return nil
	case len(r.Selected) == 0 && r.Text == "":
		return core.NewFault(core.CodeInvalid, "at least one selection or custom_text is required")
	case len(r.Selected) > 1 && !q.Several:
		return core.NewFault(core.CodeInvalid, "one selection is allowed")
	}
	labels := make([]string, 0, len(q.Options))
	for _, o := range q.Options {
		labels = append(labels, o.Label)
	}
	for _, label := range r.Selected {
		if slices.Contains(labels, label) {
			continue
		}
		if len(labels) == 0 {
			return core.NewFault(core.CodeInvalid, "the question has no options: answer in words of your own")
		}
		return core.NewFault(core.CodeInvalid, "%q is none of the options: %.500s", label, strings.Join(labels, ", "))
	}
	return nil
}

// runAskUser puts the question; the answer comes when somebody gives it.
func runAskUser(s *Session, call string, raw json.RawMessage) (*ToolOutput, error) {
	var in askUserInput
	if err := readInput(raw, &in); err != nil {
		return nil, err
	}
	if len(raw) > maxQuestionBytes {
		return nil, core.NewFault(core.CodeTooLarge, "the question has %d bytes, the limit is %d: ask shorter", len(raw), maxQuestionBytes)
	}
	question, err := in.question(s.hub.limits.QuestionTimeout)
	if err != nil {
		return nil, err
	}
	question.Agent = s.agentID()
	q := &asked{Question: question, caller: s, call: call, tasks: map[core.TaskID]struct{}{}, shown: map[place]struct{}{}}
	tasks := s.root().working()
	for _, t := range tasks {
		if t.HasEnded() {
			continue
		}
		q.Tasks = append(q.Tasks, t.ID())
		q.within = append(q.within, s.hub.above(t)...)
	}
	return nil, s.hub.questions.put(q, tasks)
}

// above returns the threads of a task and of those that stand above it, as far as
// they are in memory.
func (h *Hub) above(t *Task) []source {
	var all []source
	for t != nil {
		r := t.Request()
		all = append(all, source{r.Thread, t.From()})
		t = h.tasks.Get(r.Cause)
	}
	return all
}
