package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Task is the payload of task (page, "Task Assignment").
type Task struct {
	About
	PatternName    string `json:"patternName,omitempty"`
	PatternVersion string `json:"patternVersion,omitempty"`
	Capability     string `json:"capability,omitempty"`
	// Timeout is how many milliseconds are left.
	Timeout  Count       `json:"timeout,omitempty"`
	Priority string      `json:"priority,omitempty"`
	Context  TaskContext `json:"context,omitzero"`
	// Input comes last: see withHistory.
	Input json.RawMessage `json:"input"`

	read strictjson.Value // what was read of the input
}

// readPayload leaves the input in the message, for it may be long.
func (t *Task) readPayload(payload strictjson.Value) error {
	var in struct {
		Task
		Input strictjson.Value `json:"input"`
	}
	err := payload.Decode(&in)
	*t = in.Task
	t.Input, t.read = in.Input.Raw(), in.Input
	return err
}

// TaskContext is what has a meaning in task.payload.context. The page has the
// first two alone: the hub knows no patterns of several steps.
type TaskContext struct {
	StepIndex  Count  `json:"stepIndex"`
	TotalSteps Count  `json:"totalSteps"`
	Intent     string `json:"intent,omitempty"`
	Thread     string `json:"thread,omitempty"`
	Domain     string `json:"domain,omitempty"`
	MaxTokens  Count  `json:"maxTokens,omitempty"`
	// ReportBack says that the outcome of what was delegated is wanted.
	ReportBack bool `json:"reportBack,omitempty"`
	// Requester is who asked, as the hub established it.
	Requester string `json:"requester,omitempty"`
	// HistoryOmitted is how many earlier turns did not fit into the message.
	HistoryOmitted int `json:"historyOmitted,omitempty"`
}

// TaskRequest is the payload of task_request, by which an agent asks another.
type TaskRequest struct {
	Task
	To           string `json:"to,omitempty"`
	ParentTaskID string `json:"parentTaskId,omitempty"`
}

// readPayload leaves the input in the message, as that of a task does.
func (p *TaskRequest) readPayload(payload strictjson.Value) error {
	var in struct {
		TaskRequest
		Input strictjson.Value `json:"input"`
	}
	err := payload.Decode(&in)
	*p = in.TaskRequest
	p.Input, p.read = in.Input.Raw(), in.Input
	return err
}

// TaskCancel is the payload of task_cancel: an agent no longer wants what it
// asked for.
type TaskCancel struct {
	RequestID string `json:"requestId"`
	Reason    string `json:"reason,omitempty"`
}

// CancelShape is what has a meaning in task_cancel.
var CancelShape = shape{"requestId": nil, "reason": nil}

// TaskShape is what has a meaning in task and task_request. The names of patterns
// pass from one Parallax peer to another; others are never told them.
var TaskShape = shape{
	"requestId": nil, "taskId": nil, "executionId": nil, "to": nil, "parentTaskId": nil, "capability": nil, "input": nil, "timeout": nil, "priority": nil,
	"context": shape{"stepIndex": nil, "totalSteps": nil, "intent": nil, "thread": nil, "domain": nil, "maxTokens": nil, "reportBack": nil, "requester": nil, "historyOmitted": nil},
}

// The pattern that a task of the hub's own making names.
const (
	patternPrefix  = "dragoman."
	patternVersion = "1.0.0"
)

// The priorities on the wire, as the project's documentation lists them.
var (
	priorityNames = map[core.Priority]string{core.PriorityLow: "low", core.PriorityNormal: "normal", core.PriorityUrgent: "high"}
	priorities    = map[string]core.Priority{"low": core.PriorityLow, "normal": core.PriorityNormal, "high": core.PriorityUrgent, "critical": core.PriorityUrgent}
)

// turn is one thing said earlier, in the form that language models know.
type turn struct {
	Role      string `json:"role"`
	Content   string `json:"content"`
	Agent     string `json:"agent,omitempty"`
	TaskID    string `json:"taskId,omitempty"`
	Timestamp string `json:"timestamp,omitempty"`
}

type noticeInput struct {
	Topic      string          `json:"topic"`
	Importance string          `json:"importance,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`
}

// TaskOf is the task for a request. Its ids, capability and timeout are the
// session's to fill in. The payload is made with restore.
func TaskOf(r core.Request) (Task, error) {
	input, err := inputOf(r)
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
	if f := r.Foreign; f != nil && f.Dialect == Dialect {
		// A pattern that a Parallax peer named stands.
		var named struct {
			Payload struct {
				PatternName    string `json:"patternName"`
				PatternVersion string `json:"patternVersion"`
			} `json:"payload"`
		}
		if p := &named.Payload; json.Unmarshal(f.JSON, &named) == nil && p.PatternName != "" {
			t.PatternName, t.PatternVersion = p.PatternName, p.PatternVersion
		}
	}
	return t, nil
}

// Request is what a task asks for. now is when its timeout began to run.
func (t Task) Request(now time.Time) (core.Request, error) {
	r := core.Request{
		Thread: core.ThreadID(t.Context.Thread), Domain: t.Context.Domain, Priority: priorities[t.Priority],
		MaxTokens: int64(t.Context.MaxTokens), ReportBack: t.Context.ReportBack,
	}
	if t.Timeout > 0 {
		r.Deadline = now.Add(Milliseconds(t.Timeout))
	}
	if t.Context.Intent != "" {
		if err := r.Intent.UnmarshalText([]byte(t.Context.Intent)); err != nil {
			return r, err
		}
	}
	return r, readInput(t.read.Of(t.Input), &r)
}

// inputOf is the input of a request: its content beside the members of its data,
// or beside the whole data where that is not an object or would hide something.
func inputOf(r core.Request) (json.RawMessage, error) {
	parts := map[string]any{"content": r.Content}
	if len(r.Attachments) > 0 {
		parts["attachments"] = wireFiles(r.Attachments)
	}
	if len(r.History) > 0 {
		parts["history"] = json.RawMessage(append(writeTurns([]byte("["), r.History), ']'))
	}
	if len(r.Context) > 0 {
		parts["context"] = r.Context
	}
	if r.Notice != nil {
		parts["notice"] = noticeInput{r.Notice.Topic, importance(r.Notice.Importance), r.Notice.Data}
	}
	if len(r.Data) > 0 {
		var ms Members
		if json.Unmarshal(r.Data, &ms) != nil || len(ms) == 0 || hides(ms) {
			parts["data"] = r.Data
		} else {
			for name, v := range ms {
				parts[name] = v
			}
		}
	}
	return Marshal(parts)
}

// inputMembers are the members of an input with a meaning of their own.
var inputMembers = []string{"content", "data", "attachments", "history", "context", "notice"}

func hides(ms Members) bool {
	for _, name := range inputMembers {
		if _, there := ms[name]; there {
			return true
		}
	}
	return false
}

// readInput is the inverse of inputOf. An input that is a string is the content;
// a member with the name but not the form of one of the hub's stays in the data.
func readInput(input strictjson.Value, r *core.Request) error {
	if text, ok := input.Text(); ok {
		r.Content = text
		return nil
	}
	if input.Kind() != strictjson.Object {
		r.Data = input.Clone()
		return nil
	}
	left := Members{}
	for key, value := range input.Members() {
		taken := false
		switch string(key) {
		case "content":
			r.Content, taken = value.Text()
		case "attachments":
			r.Attachments, taken = filesOf(value)
		case "history":
			r.History, taken = historyOf(value)
		case "context":
			if taken = value.Kind() == strictjson.Object; taken {
				r.Context = value.Clone() // it may be small, and the message large
			}
		case "notice":
			r.Notice, taken = noticeOf(value)
		}
		if !taken {
			left[string(key)] = value.Raw()
		}
	}
	switch data, whole := left["data"]; {
	case len(left) == 0:
	case whole && len(left) == 1:
		r.Data = bytes.Clone(data)
	default:
		rest, err := Marshal(left)
		if err != nil {
			return err
		}
		r.Data = rest
	}
	return nil
}

func writeTurns(b []byte, history []core.Turn) []byte {
	return core.WriteTurns(b, history, Dialect, encodeTurn)
}

func encodeTurn(t core.Turn) []byte {
	wire := turn{Role: t.Role.String(), Content: t.Text, Agent: string(t.Agent), TaskID: string(t.Task)}
	if !t.At.IsZero() {
		wire.Timestamp = t.At.UTC().Format(time.RFC3339Nano)
	}
	text, _ := Marshal(wire) // texts always encode
	return text
}

// WithHistory writes the earlier turns into the input of a task message that was
// encoded without them. They are most of a long conversation, and none is encoded or
// read again for it.
func WithHistory(frame []byte, history []core.Turn) []byte {
	if len(history) == 0 {
		return frame
	}
	const ends = "}}}" // of the input, the payload and the message
	size := len(frame) + len(`,"history":[]`)
	for _, t := range history {
		size += t.Size() + len(t.Text)/16 + 64
	}
	out := append(make([]byte, 0, size), frame[:len(frame)-len(ends)]...)
	out = writeTurns(append(out, `,"history":[`...), history)
	return append(append(out, ']'), ends...)
}

// historyOf reads an array of turns, and whether it is exactly that.
func historyOf(v strictjson.Value) ([]core.Turn, bool) {
	var turns []turn
	if v.DecodeKnown(&turns) != nil || len(turns) == 0 {
		return nil, false
	}
	history := make([]core.Turn, len(turns))
	for i, t := range turns {
		history[i] = core.Turn{Text: t.Content, Agent: core.AgentID(t.Agent), Task: core.TaskID(t.TaskID)}
		if history[i].Role.UnmarshalText([]byte(t.Role)) != nil || t.Role == "" {
			return nil, false
		}
		if t.Timestamp != "" {
			at, err := time.Parse(time.RFC3339Nano, t.Timestamp)
			if err != nil {
				return nil, false
			}
			history[i].At = at
		}
	}
	return history, true
}

// noticeOf reads a notice, and whether it is exactly that.
func noticeOf(v strictjson.Value) (*core.Notice, bool) {
	var n *noticeInput
	if v.DecodeKnown(&n) != nil || n == nil || n.Topic == "" {
		return nil, false
	}
	notice := &core.Notice{Topic: n.Topic, Data: n.Data}
	if n.Importance != "" && notice.Importance.UnmarshalText([]byte(n.Importance)) != nil {
		return nil, false
	}
	return notice, true
}

func importance(i core.Importance) string {
	if i == 0 {
		return ""
	}
	return i.String()
}

// Milliseconds returns a duration that a peer wrote in milliseconds; none is negative.
func Milliseconds(c Count) time.Duration {
	const most = Count(1<<63-1) / Count(time.Millisecond)
	return time.Duration(max(0, min(c, most))) * time.Millisecond
}

// MillisecondsOf rounds up, so that a peer never thinks it has no time left.
func MillisecondsOf(d time.Duration) Count {
	return Count((d + time.Millisecond - 1) / time.Millisecond)
}

// Request is what a task_request asks for.
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
