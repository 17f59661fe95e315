package rest

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// taskView is a task put together: the answer of GET /v1/tasks/{id}.
type taskView struct {
	ID       core.TaskID    `json:"id"`
	Thread   core.ThreadID  `json:"thread"`
	State    string         `json:"state"`
	Agent    core.AgentID   `json:"agent,omitempty"`
	Intent   core.Intent    `json:"intent"`
	To       core.Address   `json:"to"`
	From     core.Principal `json:"from"`
	Hops     int            `json:"hops"`
	OpenedAt time.Time      `json:"opened_at,omitzero"`
	Deadline time.Time      `json:"deadline,omitzero"`
	Receipt  core.Receipt   `json:"receipt"`
	Answer   answerView     `json:"answer"`
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

// document puts a task together as far as it went.
func document(t *hub.Task) taskView {
	// The state comes before the events: one that says ended has its end among them.
	state := t.State().String()
	events, req := t.Events(), t.Request()
	v := taskView{
		ID: t.ID(), Thread: req.Thread, State: state, Agent: t.Agent(), Intent: req.Intent, To: req.To, From: t.From(),
		Hops: t.Hops(), Deadline: req.Deadline, Receipt: t.Receipt(),
	}
	if len(events) > 0 && events[0].Body.Kind() == core.KindOpened {
		v.OpenedAt = events[0].At
	}
	f := core.Fold(events)
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
