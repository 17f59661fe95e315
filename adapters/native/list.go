package native

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// The length of a page of agents, and of lines of the audit.
const (
	defaultPage = 100
	mostPage    = 500
)

// list answers with one of the lists of the hub.
func (s *session) list(ctx context.Context, c wire.Call, cmd core.List) error {
	if c.With.Limit < 0 {
		return s.reply(ctx, c.ID, nil, core.NewFault(core.CodeInvalid, "with.limit: want 1 or more"))
	}
	p := s.principal()
	switch cmd.What {
	case core.ListAgents:
		limit := cmp.Or(min(c.With.Limit, mostPage), defaultPage)
		result := struct {
			done
			Agents []hub.AgentStatus `json:"agents"`
			More   int               `json:"more,omitempty"`
			After  core.AgentID      `json:"after,omitempty"`
		}{done: done{c.ID}}
		result.Agents, result.More = s.hub.AgentPage(p, core.AgentID(c.With.After), limit, func(core.Card) bool { return true })
		if result.More > 0 {
			result.After = result.Agents[len(result.Agents)-1].ID
		}
		return s.send(ctx, "result", result)
	case core.ListTasks:
		return s.listTasks(ctx, c)
	case core.ListApprovals:
		all, missing := s.hub.Approvals(ctx, p)
		return s.send(ctx, "result", struct {
			done
			Approvals []task.PendingApproval `json:"approvals"`
			Missing   []string               `json:"missing,omitempty"`
		}{done{c.ID}, all, missing})
	case core.ListQuestions:
		return s.listQuestions(ctx, c)
	case core.ListPacks:
		return s.send(ctx, "result", struct {
			done
			Packs []hub.PackStatus `json:"packs"`
		}{done{c.ID}, s.hub.Packs(p)})
	case core.ListUsage:
		return s.listUsage(ctx, c)
	case core.ListAudit:
		return s.listAudit(ctx, c)
	case core.ListPrincipals:
		all, err := s.hub.Principals(p)
		return s.reply(ctx, c.ID, struct {
			done
			Principals []core.KnownPrincipal `json:"principals"`
		}{done{c.ID}, all}, err)
	}
	return s.reply(ctx, c.ID, nil, core.NewFault(core.CodeUnsupported, "there is no list of %s here", cmd.What))
}

func (s *session) listTasks(ctx context.Context, c wire.Call) error {
	w := c.With
	if w.State != "" && !slices.Contains(task.States, w.State) {
		return s.reply(ctx, c.ID, nil, core.NewFault(core.CodeInvalid, "with.state: send one of %v", task.States))
	}
	page, err := s.hub.Tasks(ctx, s.principal(), task.Filter{State: w.State, Agent: w.Agent, From: w.From, Thread: w.Thread, Cause: w.Cause, Before: w.Before, Limit: w.Limit})
	page.Tasks = append([]task.Status{}, page.Tasks...) // a list, also of none
	return s.reply(ctx, c.ID, struct {
		done
		hub.TaskPage
	}{done{c.ID}, page}, err)
}

// conversation is what a peer watches questions of.
type conversation struct {
	thread core.ThreadID
	agent  core.AgentID
}

// watching is the tag of the questions of a conversation. They come after the answer to the call.
type watching struct {
	call     string
	answered chan struct{}
}

func (s *session) listQuestions(ctx context.Context, c wire.Call) error {
	p := s.principal()
	open, missing := s.hub.ReadQuestions(p, "")
	result := struct {
		done
		Questions []question.Question `json:"questions"`
		Missing   []string            `json:"missing,omitempty"`
	}{done{c.ID}, open, missing}
	w := c.With
	if w.Stop {
		s.unwatchQuestions(w.Thread, w.Agent)
	}
	if !w.Watch || w.Stop {
		return s.send(ctx, "result", result)
	}
	s.unwatchQuestions(w.Thread, w.Agent)
	tag := &watching{c.ID, make(chan struct{})}
	defer close(tag.answered)
	if err := s.asks.WatchQuestions(question.View{Tag: tag, Thread: w.Thread, Agent: w.Agent, For: p}); err != nil {
		return s.reply(ctx, c.ID, nil, err)
	}
	s.mu.Lock()
	if s.conversations == nil {
		s.conversations = map[conversation]*watching{}
	}
	s.conversations[conversation{w.Thread, w.Agent}] = tag
	s.mu.Unlock()
	return s.send(ctx, "result", result)
}

// unwatchQuestions ends the view of a conversation, if there is one.
func (s *session) unwatchQuestions(thread core.ThreadID, agent core.AgentID) {
	at := conversation{thread, agent}
	s.mu.Lock()
	tag := s.conversations[at]
	delete(s.conversations, at)
	s.mu.Unlock()
	if tag != nil {
		s.asks.UnwatchQuestions(tag)
	}
}

// budget is the state of a budget.
type budget struct {
	By     usage.By `json:"by"`
	Key    string   `json:"key"`
	Tokens int64    `json:"tokens"`
	Used   int64    `json:"used"`
	// Cost is the limit of a budget in money, and UsedCost what is used of it; Tokens and Used are 0 then.
	Cost     core.Money `json:"cost,omitzero"`
	UsedCost core.Money `json:"used_cost,omitzero"`
	Resets   time.Time  `json:"resets,omitzero"`
}

func (s *session) listUsage(ctx context.Context, c wire.Call) error {
	totals, missing, err := s.hub.Usage(ctx, s.principal(), cmp.Or(usage.By(c.With.By), usage.ByAgent))
	if err != nil {
		return s.reply(ctx, c.ID, nil, err)
	}
	budgets := []budget{}
	for _, b := range s.hub.Budgets(s.principal()) {
		one := budget{By: b.By, Key: b.Key, Tokens: b.Tokens, Used: b.Used, Cost: b.Cost, Resets: b.Resets}
		if b.Cost.Known() {
			one.Used, one.UsedCost = 0, core.Money{Nanos: b.Used, Currency: b.Cost.Currency}
		}
		budgets = append(budgets, one)
	}
	return s.send(ctx, "result", struct {
		done
		Usage   []usage.Total `json:"usage"`
		Budgets []budget      `json:"budgets"`
		Missing []string      `json:"missing,omitempty"`
	}{done{c.ID}, totals, budgets, missing})
}

func (s *session) listAudit(ctx context.Context, c wire.Call) error {
	var after uint64
	if c.With.After != "" {
		var err error
		if after, err = strconv.ParseUint(c.With.After, 10, 64); err != nil {
			return s.reply(ctx, c.ID, nil, core.NewFault(core.CodeInvalid, "with.after: send the seq of a line"))
		}
	}
	limit, more := cmp.Or(min(c.With.Limit, mostPage), defaultPage), false
	lines := []json.RawMessage{}
	of := cmp.Or(c.With.Hub, s.hub.Name())
	err := s.hub.Audit(ctx, s.principal(), of, after, func(line []byte) bool {
		if more = len(lines) == limit; !more {
			lines = append(lines, line)
		}
		return !more
	})
	result := struct {
		done
		Hub   string            `json:"hub,omitempty"` // whose audit it is
		Audit []json.RawMessage `json:"audit"`
		After string            `json:"after,omitempty"`
	}{done: done{c.ID}, Hub: of, Audit: lines}
	if more {
		var last struct {
			Seq uint64 `json:"seq"`
		}
		if err == nil {
			err = strictjson.Decode(lines[limit-1], strictjson.Limits{}, &last)
		}
		result.After = strconv.FormatUint(last.Seq, 10)
	}
	return s.reply(ctx, c.ID, result, err)
}
