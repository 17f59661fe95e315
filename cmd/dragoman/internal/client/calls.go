package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// TaskRequest is the body of POST /v1/tasks.
type TaskRequest struct {
	Again       core.TaskID     `json:"again,omitempty"`
	To          string          `json:"to,omitempty"`
	Intent      string          `json:"intent,omitempty"`
	Content     string          `json:"content,omitempty"`
	Data        json.RawMessage `json:"data,omitempty"`
	Context     json.RawMessage `json:"context,omitempty"`
	Thread      string          `json:"thread,omitempty"`
	Branch      core.TaskID     `json:"branch,omitempty"`
	DeadlineMS  int64           `json:"deadline_ms,omitempty"`
	MaxTokens   int64           `json:"max_tokens,omitempty"`
	Options     core.Options    `json:"options,omitempty"`
	Attachments []core.File     `json:"attachments,omitempty"`
	Keep        *bool           `json:"keep,omitempty"`
}

// AgentsPage is the number of agents per page.
const AgentsPage = 500

// Agents returns all agents on the hub.
func (c *Client) Agents(ctx context.Context) ([]hub.AgentStatus, error) {
	list := []hub.AgentStatus{}
	for agent, err := range c.eachAgent(ctx) {
		if err != nil {
			return nil, err
		}
		list = append(list, agent)
	}
	return list, nil
}

// Addressed returns the agents that answer for an address, as far as the caller may see them.
func (c *Client) Addressed(ctx context.Context, to core.Address) (all []hub.AgentStatus, err error) {
	if to.Agent() != "" {
		var agent hub.AgentStatus
		switch err = c.Get(ctx, "/v1/agents/"+url.PathEscape(string(to.Agent())), &agent); {
		case IsUnknownAgent(err):
			return nil, nil
		case err != nil:
			return nil, err
		}
		return []hub.AgentStatus{agent}, nil
	}
	for agent, err := range c.eachAgent(ctx) {
		if err != nil {
			return nil, err
		}
		if _, ok := agent.Answers(to); ok {
			all = append(all, agent)
		}
	}
	return all, nil
}

// eachAgent yields the agents on the hub, ordered by id, and an error if there is one, at the end.
func (c *Client) eachAgent(ctx context.Context) iter.Seq2[hub.AgentStatus, error] {
	return func(yield func(hub.AgentStatus, error) bool) {
		for after := core.AgentID(""); ; {
			var page struct {
				Agents []hub.AgentStatus
				After  core.AgentID
			}
			if err := c.Get(ctx, fmt.Sprintf("/v1/agents?limit=%d&after=%s", AgentsPage, url.QueryEscape(string(after))), &page); err != nil {
				yield(hub.AgentStatus{}, err)
				return
			}
			for _, agent := range page.Agents {
				if !yield(agent, nil) {
					return
				}
			}
			if after = page.After; after == "" {
				return
			}
		}
	}
}

// ApprovalList are the tool calls that wait for approval.
type ApprovalList struct {
	Approvals []task.PendingApproval `json:"approvals"`
	Missing   []string               `json:"missing,omitempty"` // the hubs of which none are in it
}

// Approvals returns the tool calls that wait for approval.
func (c *Client) Approvals(ctx context.Context) (list ApprovalList, err error) {
	return list, c.Get(ctx, "/v1/approvals", &list)
}

// Readers returns the readers of a task.
func (c *Client) Readers(ctx context.Context, id core.TaskID) ([]task.ReaderStatus, error) {
	var list struct{ Readers []task.ReaderStatus }
	err := c.Get(ctx, TaskPath(id, "readers"), &list)
	return list.Readers, err
}

// Frames returns the frames of a task.
func (c *Client) Frames(ctx context.Context, id core.TaskID) (found hub.TaskFrames, err error) {
	err = c.Get(ctx, TaskPath(id, "frames"), &found)
	return found, err
}

// TaskList is a list of tasks, as the hub encodes them.
type TaskList struct {
	Tasks   []json.RawMessage `json:"tasks"`
	Before  core.TaskID       `json:"before,omitempty"`
	Missing []string          `json:"missing,omitempty"` // the hubs of which not all are in it
}

// TaskQuery selects tasks. Empty fields match all; a limit of 0 is none.
type TaskQuery struct {
	State, Agent, From, Thread, Cause, Text, Before string
	Limit                                           int
}

// Tasks returns the selected tasks from as many pages as necessary.
func (c *Client) Tasks(ctx context.Context, q TaskQuery) (TaskList, error) {
	all := TaskList{Tasks: []json.RawMessage{}, Before: core.TaskID(q.Before)}
	for {
		want := task.MostListed
		if q.Limit > 0 {
			want = min(want, q.Limit-len(all.Tasks))
		}
		v := url.Values{"limit": {fmt.Sprint(want)}}
		for name, value := range map[string]string{"state": q.State, "agent": q.Agent, "from": q.From, "thread": q.Thread, "cause": q.Cause, "text": q.Text, "before": string(all.Before)} {
			if value != "" {
				v.Set(name, value)
			}
		}
		var page TaskList
		if err := c.Get(ctx, "/v1/tasks?"+v.Encode(), &page); err != nil {
			return all, err
		}
		all.Tasks, all.Before = append(all.Tasks, page.Tasks...), page.Before
		all.Missing = append(all.Missing, page.Missing...)
		slices.Sort(all.Missing)
		all.Missing = slices.Compact(all.Missing)
		if page.Before == "" || len(all.Tasks) == q.Limit {
			return all, nil
		}
	}
}

// Threads returns the selected conversations from as many pages as necessary. A limit of 0 is none.
func (c *Client) Threads(ctx context.Context, f hub.ThreadFilter) (hub.ThreadPage, error) {
	all := hub.ThreadPage{Threads: []hub.ThreadStatus{}, Before: f.Before}
	for {
		want := task.MostListed
		if f.Limit > 0 {
			want = min(want, f.Limit-len(all.Threads))
		}
		v := url.Values{"limit": {fmt.Sprint(want)}, "state": {f.State}, "agent": {string(f.Agent)}, "before": {string(all.Before)}}
		var page hub.ThreadPage
		if err := c.Get(ctx, "/v1/threads?"+v.Encode(), &page); err != nil {
			return all, err
		}
		all.Threads, all.Before = append(all.Threads, page.Threads...), page.Before
		all.Missing = append(all.Missing, page.Missing...)
		slices.Sort(all.Missing)
		all.Missing = slices.Compact(all.Missing)
		if page.Before == "" || len(all.Threads) == f.Limit {
			return all, nil
		}
	}
}

// Injection is the outcome of an injected context.
type Injection struct {
	Task     core.TaskID `json:"task"`
	ID       string      `json:"id"`
	Accepted *bool       `json:"accepted,omitempty"`
	Reason   string      `json:"reason,omitempty"`
}

// Inject sends context to the agent of a task and waits for its answer. It returns
// ErrUnanswered if there is no answer in time; the context has been sent nevertheless.
func (c *Client) Inject(ctx context.Context, task core.TaskID, body any, wait time.Duration) (answer Injection, err error) {
	path := TaskPath(task, "inject")
	if wait <= 0 {
		return answer, c.Post(ctx, path, body, &answer)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait, ErrUnanswered)
	defer cancel()
	err = c.Post(ctx, path+"?wait=true", body, &answer)
	if err != nil && errors.Is(context.Cause(ctx), ErrUnanswered) {
		err = fmt.Errorf("%w within %s: 'dragoman tail %s' shows the outcome", ErrUnanswered, config.FormatTime(wait), task)
	}
	return answer, err
}

// ErrUnanswered means that an agent did not answer an injection in time.
var ErrUnanswered = errors.New("the agent has not answered")

// ThreadIsNew reports whether a thread has no turns.
func (c *Client) ThreadIsNew(ctx context.Context, id string) (bool, error) {
	var thread struct{ Turns []json.RawMessage }
	err := c.Get(ctx, "/v1/threads/"+url.PathEscape(id), &thread)
	return err == nil && len(thread.Turns) == 0, err
}

// JournalFailure returns why the hub cannot write its journal, "" if it can.
func (c *Client) JournalFailure(ctx context.Context) (reason string, err error) {
	var hub struct{ Journal struct{ Reason string } }
	err = c.Get(ctx, "/v1/hub", &hub)
	return hub.Journal.Reason, err
}

// UsageTotals is the response of GET /v1/usage.
type UsageTotals struct {
	By       string         `json:"by"`
	Currency string         `json:"currency"` // of all costs
	Totals   []usage.Total  `json:"totals"`
	Budgets  []BudgetStatus `json:"budgets"`
	Missing  []string       `json:"missing,omitempty"` // the hubs whose tokens are not in the totals
}

// BudgetStatus is how much of a budget is used.
type BudgetStatus struct {
	By      string `json:"by"`
	Key     string `json:"key"`
	Tokens  int64  `json:"tokens"`
	Per     string `json:"per"`
	Used    int64  `json:"used"`
	Percent int64  `json:"percent"`
	// Cost is the limit of a budget in money, and UsedCost what is used of it.
	Cost     core.Money `json:"cost,omitzero"`
	UsedCost core.Money `json:"used_cost,omitzero"`
	Resets   *time.Time `json:"resets,omitempty"`
}

// Usage returns the token usage grouped by a key such as agent or day.
func (c *Client) Usage(ctx context.Context, by string) (u UsageTotals, err error) {
	return u, c.Get(ctx, "/v1/usage?by="+url.QueryEscape(by), &u)
}
