package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// TaskRequest is what a person asks for, as POST /v1/tasks takes it.
type TaskRequest struct {
	To          string          `json:"to"`
	Intent      string          `json:"intent"`
	Content     string          `json:"content"`
	Data        json.RawMessage `json:"data,omitempty"`
	Context     json.RawMessage `json:"context,omitempty"`
	Thread      string          `json:"thread,omitempty"`
	DeadlineMS  int64           `json:"deadline_ms,omitempty"`
	MaxTokens   int64           `json:"max_tokens,omitempty"`
	Attachments []core.File     `json:"attachments,omitempty"`
	Keep        *bool           `json:"keep,omitempty"`
}

// AgentsPage is how many agents are asked for at once.
const AgentsPage = 500

// Agents returns all agents on the hub, page by page.
func (c *Client) Agents(ctx context.Context) ([]hub.AgentStatus, error) {
	list := []hub.AgentStatus{}
	for after := core.AgentID(""); ; {
		var page struct {
			Agents []hub.AgentStatus
			After  core.AgentID
		}
		if err := c.Get(ctx, fmt.Sprintf("/v1/agents?limit=%d&after=%s", AgentsPage, url.QueryEscape(string(after))), &page); err != nil {
			return nil, err
		}
		list = append(list, page.Agents...)
		if after = page.After; after == "" {
			return list, nil
		}
	}
}

// Approvals are the tool calls that wait.
func (c *Client) Approvals(ctx context.Context) ([]hub.PendingApproval, error) {
	var list struct{ Approvals []hub.PendingApproval }
	err := c.Get(ctx, "/v1/approvals", &list)
	return list.Approvals, err
}

// taskList is a list of tasks as the hub tells them.
type taskList struct {
	Tasks  []json.RawMessage `json:"tasks"`
	Before core.TaskID       `json:"before,omitempty"`
}

// TaskQuery says which tasks are wanted. A limit of 0 is none.
type TaskQuery struct {
	State, Agent, From, Thread, Before string
	Limit                              int
}

// Tasks reads as many pages of the list as the limit takes.
func (c *Client) Tasks(ctx context.Context, q TaskQuery) (taskList, error) {
	all := taskList{Tasks: []json.RawMessage{}, Before: core.TaskID(q.Before)}
	for {
		want := hub.MostListed
		if q.Limit > 0 {
			want = min(want, q.Limit-len(all.Tasks))
		}
		v := url.Values{"limit": {fmt.Sprint(want)}}
		for name, value := range map[string]string{"state": q.State, "agent": q.Agent, "from": q.From, "thread": q.Thread, "before": string(all.Before)} {
			if value != "" {
				v.Set(name, value)
			}
		}
		var page taskList
		if err := c.Get(ctx, "/v1/tasks?"+v.Encode(), &page); err != nil {
			return all, err
		}
		all.Tasks, all.Before = append(all.Tasks, page.Tasks...), page.Before
		if page.Before == "" || len(all.Tasks) == q.Limit {
			return all, nil
		}
	}
}

// Injection is what became of context.
type Injection struct {
	Task     core.TaskID `json:"task"`
	ID       string      `json:"id"`
	Accepted *bool       `json:"accepted,omitempty"`
	Reason   string      `json:"reason,omitempty"`
}

// Inject pushes context and waits so long for the agent's answer. It returns a
// timeout when the agent says nothing in that time: what was sent stays sent.
func (c *Client) Inject(ctx context.Context, task core.TaskID, body any, wait time.Duration) (told Injection, err error) {
	path := TaskPath(task, "inject")
	if wait <= 0 {
		return told, c.Post(ctx, path, body, &told)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait, ErrUnanswered)
	defer cancel()
	err = c.Post(ctx, path+"?wait=true", body, &told)
	if err != nil && errors.Is(context.Cause(ctx), ErrUnanswered) {
		err = fmt.Errorf("%w within %s: 'dragoman tail %s' shows what comes of it", ErrUnanswered, wait, task)
	}
	return told, err
}

var ErrUnanswered = errors.New("the agent has not said what it makes of it")

// ThreadIsNew reports whether the hub has kept no turn of a thread.
func (c *Client) ThreadIsNew(ctx context.Context, id string) (bool, error) {
	var thread struct{ Turns []json.RawMessage }
	err := c.Get(ctx, "/v1/threads/"+url.PathEscape(id), &thread)
	return err == nil && len(thread.Turns) == 0, err
}

// UsageTotals is what the hub answers to who asks for the usage.
type UsageTotals struct {
	By      string         `json:"by"`
	Totals  []usage.Total  `json:"totals"`
	Budgets []BudgetStatus `json:"budgets"`
}

// BudgetStatus is how much of a budget is used.
type BudgetStatus struct {
	By      string     `json:"by"`
	Key     string     `json:"key"`
	Tokens  int64      `json:"tokens"`
	Per     string     `json:"per"`
	Used    int64      `json:"used"`
	Percent int64      `json:"percent"`
	Resets  *time.Time `json:"resets,omitempty"`
}

// Usage asks what was used, added up by a key such as agent or day.
func (c *Client) Usage(ctx context.Context, by string) (u UsageTotals, err error) {
	return u, c.Get(ctx, "/v1/usage?by="+url.QueryEscape(by), &u)
}
