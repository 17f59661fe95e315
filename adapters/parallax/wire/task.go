package wire

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Task is the payload of task (page, "Task Assignment").
type Task struct {
	TaskRef
	PatternName    string `json:"patternName,omitempty"`
	PatternVersion string `json:"patternVersion,omitempty"`
	Capability     string `json:"capability,omitempty"`
	// Timeout is the time left, in milliseconds.
	Timeout  Count       `json:"timeout,omitempty"`
	Priority string      `json:"priority,omitempty"`
	Context  TaskContext `json:"context,omitzero"`
	// Metadata is an addition to the page, whose task has none: see [ExtensionTrace].
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// Input must be last: see WithHistory.
	Input json.RawMessage `json:"input"`

	parsed strictjson.Value // of Input
}

// readPayload does not copy the input, which may be long.
func (t *Task) readPayload(payload strictjson.Value) error {
	var in struct {
		Task
		Input strictjson.Value `json:"input"`
	}
	err := payload.Decode(&in)
	*t = in.Task
	t.Input, t.parsed = in.Input.Raw(), in.Input
	return err
}

// TaskContext is what the hub knows of task.payload.context. The page has only the first
// two members; the hub has no patterns of several steps.
type TaskContext struct {
	StepIndex  Count  `json:"stepIndex"`
	TotalSteps Count  `json:"totalSteps"`
	Intent     string `json:"intent,omitempty"`
	Thread     string `json:"thread,omitempty"`
	Domain     string `json:"domain,omitempty"`
	MaxTokens  Count  `json:"maxTokens,omitempty"`
	// ReportBack asks for the outcome of a delegated task.
	ReportBack bool `json:"reportBack,omitempty"`
	// Requester is the principal that the hub established.
	Requester string `json:"requester,omitempty"`
	// HistoryOmitted counts the earlier turns that did not fit into the message.
	HistoryOmitted int `json:"historyOmitted,omitempty"`
}

// TaskRequest is the payload of task_request, with which an agent asks another.
type TaskRequest struct {
	Task
	To           string `json:"to,omitempty"`
	ParentTaskID string `json:"parentTaskId,omitempty"`
}

// readPayload does not copy the input, which may be long.
func (p *TaskRequest) readPayload(payload strictjson.Value) error {
	var in struct {
		TaskRequest
		Input strictjson.Value `json:"input"`
	}
	err := payload.Decode(&in)
	*p = in.TaskRequest
	p.Input, p.parsed = in.Input.Raw(), in.Input
	return err
}

// TaskCancel is the payload of task_cancel, with which an agent cancels its task_request.
type TaskCancel struct {
	RequestID string `json:"requestId"`
	Reason    string `json:"reason,omitempty"`
}

// CancelShape names the members of task_cancel that the hub knows.
var CancelShape = shape{"requestId": nil, "reason": nil}

// TaskShape names the members of task and task_request that the hub knows. The names of
// patterns are not among them: they pass only between Parallax peers.
var TaskShape = shape{
	"requestId": nil, "taskId": nil, "executionId": nil, "to": nil, "parentTaskId": nil, "capability": nil, "input": nil, "timeout": nil, "priority": nil,
	"context": shape{"stepIndex": nil, "totalSteps": nil, "intent": nil, "thread": nil, "domain": nil, "maxTokens": nil, "reportBack": nil, "requester": nil, "historyOmitted": nil},
}

// The pattern that the hub names in a task unless a Parallax peer named one.
const (
	patternPrefix  = "dragoman."
	patternVersion = "1.0.0"
)

// The priorities on the wire, as the project's documentation lists them.
var (
	priorityNames = map[core.Priority]string{core.PriorityLow: "low", core.PriorityNormal: "normal", core.PriorityUrgent: "high"}
	priorities    = map[string]core.Priority{"low": core.PriorityLow, "normal": core.PriorityNormal, "high": core.PriorityUrgent, "critical": core.PriorityUrgent}
)

// TaskOf returns the task for a request. The session adds ids, capability and timeout,
// and restores the members in r.Foreign.
func TaskOf(r core.Request) (Task, error) {
	input, err := encodeInput(r)
	if err != nil {
		return Task{}, err
	}
	intent := cmp.Or(r.Intent, core.IntentAsk)
	t := Task{
		PatternName: patternPrefix + intent.String(), PatternVersion: patternVersion, Input: input,
		Priority: priorityNames[cmp.Or(r.Priority, core.PriorityNormal)],
		Context: TaskContext{
			TotalSteps: 1, Intent: intent.String(), Thread: string(r.Thread), Domain: r.Domain,
			MaxTokens: Count(r.MaxTokens), ReportBack: r.ReportBack,
		},
	}
	var pattern struct {
		PatternName    string `json:"patternName"`
		PatternVersion string `json:"patternVersion"`
	}
	if strictjson.ParseValid(MembersOf(r.Foreign)["payload"]).Decode(&pattern) == nil && pattern.PatternName != "" {
		t.PatternName, t.PatternVersion = pattern.PatternName, pattern.PatternVersion
	}
	return t, nil
}

// Request returns the request of a task whose timeout began at now.
func (t Task) Request(now time.Time) (core.Request, error) {
	r := core.Request{
		Thread: core.ThreadID(t.Context.Thread), Domain: t.Context.Domain, Priority: priorities[t.Priority],
		MaxTokens: int64(t.Context.MaxTokens), ReportBack: t.Context.ReportBack,
	}
	if t.Timeout > 0 {
		r.Deadline = now.Add(Milliseconds(t.Timeout))
	}
	if err := r.Intent.UnmarshalText([]byte(t.Context.Intent)); err != nil {
		return r, err
	}
	return r, readInput(t.parsed.Of(t.Input), &r)
}

// Request returns the request of a task_request that came at now.
func (p TaskRequest) Request(now time.Time) (core.Request, error) {
	r, err := p.Task.Request(now)
	if err != nil {
		return r, err
	}
	r.Cause = core.TaskID(p.ParentTaskID)
	switch {
	case p.To != "":
		r.To, err = core.ParseAddress(p.To)
	case p.Capability != "":
		r.To, err = core.ParseAddress("capability:" + p.Capability)
	case r.Domain != "":
		r.To, err = core.ParseAddress("domain:" + r.Domain)
	default:
		err = core.NewFault(core.CodeInvalid, "to: missing; send an agent id, capability:NAME, domain:NAME or *")
	}
	return r, err
}

// Milliseconds returns a duration that a peer wrote in milliseconds, zero for a negative
// one.
func Milliseconds(c Count) time.Duration {
	const most = Count(1<<63-1) / Count(time.Millisecond)
	return time.Duration(max(0, min(c, most))) * time.Millisecond
}

// MillisecondsOf rounds up, so that time left is never written as none.
func MillisecondsOf(d time.Duration) Count {
	return Count((d + time.Millisecond - 1) / time.Millisecond)
}
