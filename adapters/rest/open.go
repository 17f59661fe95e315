package rest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/redact"
	"github.com/dragoman-hub/dragoman/core/task"
)

// taskBody is the body of POST /v1/tasks.
type taskBody struct {
	Again       core.TaskID     `json:"again"`
	To          core.Address    `json:"to"`
	Intent      core.Intent     `json:"intent"`
	Content     string          `json:"content"`
	Data        json.RawMessage `json:"data"`
	Context     json.RawMessage `json:"context"`
	Thread      core.ThreadID   `json:"thread"`
	Branch      core.TaskID     `json:"branch"`
	Domain      string          `json:"domain"`
	Priority    core.Priority   `json:"priority"`
	MaxTokens   int64           `json:"max_tokens"`
	Options     core.Options    `json:"options"`
	DeadlineMS  *int64          `json:"deadline_ms"`
	Attachments []core.File     `json:"attachments"`
	ReportBack  bool            `json:"report_back"`
	Keep        *bool           `json:"keep"`
	Receipt     core.Stage      `json:"receipt"`
}

func (b taskBody) request() (core.Request, error) {
	req := core.Request{
		Intent: b.Intent, To: b.To, Thread: b.Thread, Branch: b.Branch, Content: b.Content, Data: nonNull(b.Data), Attachments: b.Attachments,
		Context: nonNull(b.Context), Domain: b.Domain, Priority: b.Priority, MaxTokens: b.MaxTokens, Options: b.Options, ReportBack: b.ReportBack,
	}
	switch {
	case b.Intent == core.IntentNotify:
		return req, core.NewFault(core.CodeInvalid, "intent: want ask or delegate; POST /v1/notices to notify")
	case len(b.Thread) > core.MaxIDBytes:
		return req, core.NewFault(core.CodeInvalid, "thread: want at most %d bytes, got %d", core.MaxIDBytes, len(b.Thread))
	case b.Branch != "" && b.Thread != "":
		return req, core.NewFault(core.CodeInvalid, "branch: begins a new conversation: leave out thread")
	case b.MaxTokens < 0:
		return req, core.NewFault(core.CodeInvalid, "max_tokens: want 0 (no limit) or more, got %d", b.MaxTokens)
	case req.Context != nil && req.Context[0] != '{':
		return req, core.NewFault(core.CodeInvalid, "context: want an object, got %.20s", req.Context)
	}
	for i, f := range b.Attachments {
		if f.Name == "" {
			return req, core.NewFault(core.CodeInvalid, "attachments[%d].name: missing", i)
		}
	}
	var err error
	req.Deadline, err = deadline(b.DeadlineMS)
	return req, err
}

// noticeBody is the body of POST /v1/notices.
type noticeBody struct {
	To         core.Address    `json:"to"`
	Topic      string          `json:"topic"`
	Data       json.RawMessage `json:"data"`
	Importance core.Importance `json:"importance"`
	DeadlineMS *int64          `json:"deadline_ms"`
	Receipt    core.Stage      `json:"receipt"`
}

func (b noticeBody) request() (core.Request, error) {
	at, err := deadline(b.DeadlineMS)
	return core.Request{
		Intent: core.IntentNotify, To: b.To, Deadline: at,
		Notice: &core.Notice{Topic: b.Topic, Data: nonNull(b.Data), Importance: b.Importance},
	}, err
}

// nonNull returns the value, or nil for null.
func nonNull(value json.RawMessage) json.RawMessage {
	if value = bytes.TrimSpace(value); string(value) == "null" {
		return nil
	}
	return value
}

// maxDeadline is the maximum duration of a task: journals do not keep tasks longer.
const maxDeadline = 7 * 24 * time.Hour

// deadline returns the time that many milliseconds from now; the zero time for nil.
func deadline(ms *int64) (time.Time, error) {
	if ms == nil {
		return time.Time{}, nil
	}
	if *ms < 1 || *ms > maxDeadline.Milliseconds() {
		return time.Time{}, core.NewFault(core.CodeInvalid, "deadline_ms: want 1 to %d, got %d", maxDeadline.Milliseconds(), *ms)
	}
	return time.Now().Add(time.Duration(*ms) * time.Millisecond), nil
}

func (a *api) postTask(c call) error {
	var body taskBody
	if err := a.read(c, &body); err != nil {
		return err
	}
	req, err := body.request()
	if err == nil && body.Again != "" {
		req, err = a.again(c, body.Again, req)
	}
	var branch hub.Branch
	if err == nil && req.Branch != "" {
		branch, err = a.hub.Branch(c.r.Context(), c.from, req.Branch)
	}
	if err != nil {
		return err
	}
	return a.open(c, req, branch, body.Keep, body.Receipt)
}

// again returns the request of a task as a new one, with the deadline of another, which asks for nothing else.
func (a *api) again(c call, id core.TaskID, with core.Request) (core.Request, error) {
	if !reflect.DeepEqual(with, core.Request{Deadline: with.Deadline}) {
		return with, core.NewFault(core.CodeInvalid, "again: the request is that of the task: leave out the rest but for deadline_ms, keep and receipt")
	}
	t, err := a.hub.Task(c.r.Context(), c.from, id)
	if err != nil {
		return with, err
	}
	r := t.Request()
	if r.Thread == "" {
		r.Thread = core.ThreadID(id) // it began the conversation
	}
	req := core.Request{
		Intent: r.Intent, To: r.To, Thread: r.Thread, Branch: r.Branch, Content: r.Content, Data: r.Data, Attachments: r.Attachments,
		Context: r.Context, Domain: r.Domain, Priority: r.Priority, MaxTokens: r.MaxTokens, Options: r.Options, ReportBack: r.ReportBack, Deadline: with.Deadline,
	}
	switch {
	case r.Intent == core.IntentNotify:
		return with, core.NewFault(core.CodeInvalid, "again: task %s is a notice: POST /v1/notices sends one", id)
	case redact.IsMarked(req):
		return with, core.NewFault(core.CodeInvalid, "again: what was %s of task %s is not kept: send it as a new request", redact.Mark, id)
	}
	return req, nil
}

func (a *api) postNotice(c call) error {
	var body noticeBody
	if err := a.read(c, &body); err != nil {
		return err
	}
	req, err := body.request()
	if err != nil {
		return err
	}
	return a.open(c, req, hub.Branch{}, new(true), body.Receipt)
}

// open opens a task and answers as the client asked: with a receipt, with the events, or with
// the outcome. keepWanted is the keep of the request; nil means the default.
func (a *api) open(c call, req core.Request, branch hub.Branch, keepWanted *bool, stage core.Stage) error {
	form := negotiate(c.r, jsonType, eventType, lineType)
	wait, err := flag(c.r, "wait", false)
	if err != nil {
		return err
	}
	keep, err := a.keeps(wait || form != jsonType, keepWanted, stage)
	if err != nil {
		return err
	}
	attends, err := isSet(c.r.Header, questionsHeader, "read")
	if err != nil {
		return err
	}
	again, err := isSet(c.r.Header, asksHeader, "again")
	if err != nil {
		return err
	}
	s := a.connect(c)
	defer leave(s)
	t, err := s.Open(req, hub.OpenOptions{Branch: branch, Keep: keep, Unwatched: form == jsonType, Attends: attends, AsksAgain: again, Trace: core.TraceOf(c.r.Header)})
	if err != nil {
		if t != nil {
			return &refusal{err: err, task: t.ID()}
		}
		return err
	}
	if stage == core.StageRecorded {
		if err := a.recorded(c, t, 1); err != nil {
			return err
		}
	}
	c.w.Header().Set("Location", "/v1/tasks/"+string(t.ID()))
	switch {
	case form != jsonType:
		a.relay(c, form, sourceOf(s, follow{task: t}))
		return nil
	case wait:
		s.AwaitEnd(t)
		return a.outcome(c, s, t, stage)
	}
	return a.reply(c.w, http.StatusCreated, opened{t.ID(), t.Request().Thread, receipt(t, stage)})
}

// keeps returns whether a task outlives the connection of its client, which lasts as long as the task if connected says so.
// It returns an invalid Fault for what cannot be had.
func (a *api) keeps(connected bool, wanted *bool, stage core.Stage) (bool, error) {
	keep := wanted == nil || *wanted
	switch {
	case stage != 0 && stage != core.StageAccepted && stage != core.StageRecorded:
		return false, core.NewFault(core.CodeInvalid, "receipt: want accepted or recorded, got %s", stage)
	case !keep && !connected:
		return false, core.NewFault(core.CodeInvalid, "keep: false cancels the task when the connection ends, which is at once: ask for the events or for ?wait=true")
	}
	return keep, nil
}

// Headers of a request that opens a task. Hubs that do not know them ignore them.
const (
	questionsHeader = "Dragoman-Questions" // read: its sender reads the questions of its thread
	asksHeader      = "Dragoman-Asks"      // again: its sender asks again until an agent is here
)

// isSet reports whether a header is there. It has one valid value.
func isSet(h http.Header, name, value string) (bool, error) {
	switch text := h.Get(name); text {
	case "":
		return false, nil
	case value:
		return true, nil
	default:
		return false, core.NewFault(core.CodeInvalid, "%s: %.40q: send %s, or leave it out", name, text, value)
	}
}

// opened answers POST /v1/tasks.
type opened struct {
	ID      core.TaskID   `json:"id"`
	Thread  core.ThreadID `json:"thread"`
	Receipt core.Receipt  `json:"receipt"`
}

// outcome waits for the end of a task and answers with it, unless the client closes the
// connection first.
func (a *api) outcome(c call, s *hub.Session, t *task.Task, stage core.Stage) error {
	for t.State() != task.Ended {
		if _, err := s.Next(c.r.Context()); err != nil {
			return err
		}
	}
	if r := frame.RingOf(c.r.Context()); r != nil {
		r.Tell(t.ID(), t.Answer().End)
	}
	if stage == core.StageRecorded {
		events := t.Events()
		if err := a.recorded(c, t, events[len(events)-1].End()); err != nil {
			return err
		}
	}
	d := document(t)
	d.Receipt = receipt(t, stage)
	return a.reply(c.w, http.StatusOK, d)
}
