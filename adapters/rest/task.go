package rest

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// taskHead is a task without its answer: its request and its state.
type taskHead struct {
	ID          core.TaskID     `json:"id"`
	Thread      core.ThreadID   `json:"thread"`
	Branch      core.TaskID     `json:"branch,omitempty"`
	State       string          `json:"state"`
	Agent       core.AgentID    `json:"agent,omitempty"`
	Intent      core.Intent     `json:"intent"`
	To          core.Address    `json:"to"`
	From        core.Principal  `json:"from"`
	Hops        int             `json:"hops"`
	Cause       core.TaskID     `json:"cause,omitempty"`
	OpenedAt    time.Time       `json:"opened_at,omitzero"`
	EndedAt     time.Time       `json:"ended_at,omitzero"`
	Deadline    time.Time       `json:"deadline,omitzero"`
	Receipt     core.Receipt    `json:"receipt"`
	Content     string          `json:"content"`
	Data        json.RawMessage `json:"data,omitempty"`
	Attachments []core.File     `json:"attachments,omitempty"`
	Context     json.RawMessage `json:"context,omitempty"`
	Domain      string          `json:"domain,omitempty"`
	Priority    core.Priority   `json:"priority,omitempty"`
	MaxTokens   int64           `json:"max_tokens,omitempty"`
	Options     core.Options    `json:"options,omitempty"`
	ReportBack  bool            `json:"report_back,omitempty"`
	Notice      *core.Notice    `json:"notice,omitempty"`
}

func headOf(s task.Status) taskHead {
	r := s.Request
	return taskHead{
		ID: s.ID, Thread: r.Thread, Branch: r.Branch, State: s.State, Agent: s.Agent, Intent: r.Intent, To: r.To, From: s.From, Hops: s.Hops, Cause: r.Cause,
		OpenedAt: s.OpenedAt, EndedAt: s.EndedAt, Deadline: r.Deadline, Receipt: s.Receipt,
		Content: r.Content, Data: r.Data, Attachments: r.Attachments, Context: r.Context, Domain: r.Domain, Priority: r.Priority,
		MaxTokens: r.MaxTokens, Options: r.Options, ReportBack: r.ReportBack, Notice: r.Notice,
	}
}

// listedTask is a task on a page of GET /v1/tasks.
type listedTask struct {
	taskHead
	Fault *core.Fault `json:"fault,omitempty"`
	Found string      `json:"found,omitempty"`
}

// taskView is the answer of GET /v1/tasks/{id}.
type taskView struct {
	taskHead
	Answer answerView `json:"answer"`
}

// answerView is a core.Answer as JSON.
type answerView struct {
	Text       string          `json:"text"`
	Data       json.RawMessage `json:"data,omitempty"`
	Files      []core.File     `json:"files,omitempty"`
	Usage      core.Usage      `json:"usage"`
	Truncated  bool            `json:"truncated"`
	TokensUsed int64           `json:"tokens_used"`
	End        string          `json:"end,omitempty"`
	Fault      *core.Fault     `json:"fault,omitempty"`
}

// document returns a task with its answer so far.
func document(t *task.Task) taskView {
	// The status is read before the answer, so that an ended task has its whole answer.
	v := taskView{taskHead: headOf(t.Status())}
	f := t.Answer()
	v.Answer = answerView{Text: f.Text, Data: f.Data, Files: f.Files, Usage: f.Usage, Truncated: f.Truncated, TokensUsed: f.TokensUsed, Fault: f.Fault}
	if f.End != 0 {
		v.State, v.Answer.End = f.End.String(), f.End.String()
	}
	return v
}

func (a *api) getTask(c call) error {
	t, err := a.task(c)
	if err != nil {
		return err
	}
	return a.reply(c.w, http.StatusOK, document(t))
}

// getReaders lists the readers of a task.
func (a *api) getReaders(c call) error {
	readers, err := a.hub.Readers(c.r.Context(), c.from, core.TaskID(c.id()))
	if err != nil {
		return err
	}
	return a.reply(c.w, http.StatusOK, struct {
		Readers []task.ReaderStatus `json:"readers"`
	}{readers})
}

// getFrames lists the frames of a task.
func (a *api) getFrames(c call) error {
	found, err := a.hub.Frames(c.r.Context(), c.from, core.TaskID(c.id()))
	if err != nil {
		return err
	}
	return a.reply(c.w, http.StatusOK, found)
}

// getTasks lists the tasks that the sender may read, newest first.
func (a *api) getTasks(c call) error {
	q := c.r.URL.Query()
	f := task.Filter{
		State: q.Get("state"), Agent: core.AgentID(q.Get("agent")), From: q.Get("from"), Thread: core.ThreadID(q.Get("thread")), Cause: core.TaskID(q.Get("cause")), Before: core.TaskID(q.Get("before")), Text: q.Get("text"),
	}
	var err error
	if f.Limit, err = number(c.r, "limit", task.DefaultListed, task.MostListed); err == nil {
		err = checkList(f.State, f.Agent, f.Before)
	}
	switch {
	case err != nil:
		return err
	case len(f.Thread) > core.MaxIDBytes:
		return core.NewFault(core.CodeInvalid, "?thread=: want at most %d bytes, got %d", core.MaxIDBytes, len(f.Thread))
	case len(f.Text) > core.MaxIDBytes:
		return core.NewFault(core.CodeInvalid, "?text=: want at most %d bytes, got %d", core.MaxIDBytes, len(f.Text))
	}
	if _, isTask := f.Cause.Begun(); f.Cause != "" && !isTask {
		return core.NewFault(core.CodeInvalid, "?cause=%s: send the id of a task", f.Cause)
	}
	found, err := a.hub.Tasks(c.r.Context(), c.from, f)
	if err != nil {
		return err
	}
	tasks := []listedTask{}
	for _, s := range found.Tasks {
		tasks = append(tasks, listedTask{headOf(s), s.Fault, s.Found})
	}
	return a.reply(c.w, http.StatusOK, struct {
		Tasks   []listedTask `json:"tasks"`
		Before  core.TaskID  `json:"before,omitempty"`
		Missing []string     `json:"missing,omitempty"`
	}{tasks, found.Before, found.Missing})
}
