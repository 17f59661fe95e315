package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// A tool either returns its result, or returns nil and has a reader of a task deliver the
// result at the end of that task.

func readInput(raw json.RawMessage, v any) error {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	if err := strictjson.DecodeKnown(raw, strictjson.Limits{}, v); err != nil {
		return core.NewFault(core.CodeInvalid, "invalid input: %s", err)
	}
	return nil
}

type agentView struct {
	ID           core.AgentID   `json:"id"`
	Name         string         `json:"name"`
	Dialect      string         `json:"dialect"`
	Capabilities []string       `json:"capabilities"`
	Domains      []string       `json:"domains"`
	Model        string         `json:"model,omitempty"`
	State        core.LoadState `json:"state"`
}

// The limits of one page of agents_list.
const (
	defaultListedAgents = 100
	mostListedAgents    = 500
	listedAgentsBytes   = 256 << 10
)

// agentList is the output of agents_list: agents by id, how many more there are, and the id
// after which those come.
type agentList struct {
	Agents []agentView  `json:"agents"`
	More   int          `json:"more,omitempty"`
	After  core.AgentID `json:"after,omitempty"`
}

func runList(s *Session, _ string, raw json.RawMessage) (*tool.Result, error) {
	in := struct {
		Capability string       `json:"capability"`
		Domain     string       `json:"domain"`
		Limit      int          `json:"limit"`
		After      core.AgentID `json:"after"`
	}{Limit: defaultListedAgents}
	if err := readInput(raw, &in); err != nil {
		return nil, err
	}
	if in.Limit < 1 || in.Limit > mostListedAgents {
		return nil, core.NewFault(core.CodeInvalid, "invalid input: limit: want 1 to %d, got %d", mostListedAgents, in.Limit)
	}
	capability, domain := core.ToCapability(in.Capability), core.ToDomain(in.Domain)
	page, more := s.hub.AgentPage(s.identity.Principal, in.After, in.Limit, func(c core.Card) bool {
		_, able := c.Answers(capability)
		_, serves := c.Answers(domain)
		return (in.Capability == "" || able) && (in.Domain == "" || serves)
	})
	list, bytes := agentList{Agents: []agentView{}, More: more}, 0
	for i, a := range page {
		v := agentView{a.ID, a.Name, a.Dialect, append([]string{}, a.Capabilities...), append([]string{}, a.Domains...), a.Model, a.Load.State}
		if bytes += len(output(v).Output); i > 0 && bytes > listedAgentsBytes {
			list.More += len(page) - i
			break
		}
		list.Agents = append(list.Agents, v)
	}
	if list.More > 0 {
		list.After = list.Agents[len(list.Agents)-1].ID
	}
	return output(list), nil
}

type askInput struct {
	To             core.Address    `json:"to"`
	Content        string          `json:"content"`
	Data           json.RawMessage `json:"data"`
	TimeoutSeconds float64         `json:"timeout_seconds"`
}

type askOutput struct {
	TaskID  core.TaskID     `json:"task_id"`
	AgentID core.AgentID    `json:"agent_id"`
	Text    string          `json:"text"`
	Data    json.RawMessage `json:"data,omitempty"`
	Files   []core.File     `json:"files,omitempty"`
}

// askRequest returns the request of an input of agent_ask.
func (h *Hub) askRequest(raw json.RawMessage) (core.Request, error) {
	var in askInput
	if err := readInput(raw, &in); err != nil {
		return core.Request{}, err
	}
	req := core.Request{Intent: core.IntentAsk, To: in.To, Content: in.Content, Data: in.Data}
	if in.TimeoutSeconds > 0 {
		req.Deadline = time.Now().Add(h.seconds(in.TimeoutSeconds))
	}
	return req, nil
}

// Ask calls the tool agent_ask, but returns its task at once instead of its result later: for
// dialects that show the task while it runs. It is for the caller to read the answer. It
// returns the errors of [Session.Open], as that does.
func (s *Session) Ask(input json.RawMessage, o OpenOptions) (t *task.Task, err error) {
	err = s.doFunc(core.CallTool{Tool: askName, Input: input}, func() error {
		req, err := s.hub.askRequest(input)
		if err == nil {
			o.tool = askName
			t, err = s.Open(req, o)
		}
		return err
	})
	return t, err
}

func runAsk(s *Session, call string, raw json.RawMessage) (*tool.Result, error) {
	req, err := s.hub.askRequest(raw)
	if err != nil {
		return nil, err
	}
	return nil, s.openThen(req, OpenOptions{Unwatched: true, tool: askName}, call, func(t *task.Task) *tool.Result {
		a := t.Answer()
		if a.Fault == nil {
			return output(askOutput{t.ID(), a.Agent, a.Text, a.Data, a.Files})
		}
		o := &tool.Result{Fault: a.Fault}
		if a.Text != "" {
			o.Output = result(t).Output
		}
		return o
	})
}

type delegateOutput struct {
	TaskID   core.TaskID  `json:"task_id"`
	AgentID  core.AgentID `json:"agent_id,omitempty"` // unknown while the task waits for any agent
	Accepted bool         `json:"accepted"`
}

func runDelegate(s *Session, call string, raw json.RawMessage) (*tool.Result, error) {
	var in struct {
		To      core.Address    `json:"to"`
		Content string          `json:"content"`
		Context json.RawMessage `json:"context"`
	}
	if err := readInput(raw, &in); err != nil {
		return nil, err
	}
	req := core.Request{Intent: core.IntentDelegate, To: in.To, Content: in.Content, Context: in.Context}
	t, err := s.Open(req, OpenOptions{Keep: true, Unwatched: true, tool: delegateName, call: call})
	if err != nil {
		return nil, err
	}
	agent := cmp.Or(t.Agent(), in.To.Preferred()) // another hub may not have told yet who has it
	return output(delegateOutput{t.ID(), agent, true}), nil
}

type resultOutput struct {
	TaskID core.TaskID     `json:"task_id"`
	State  string          `json:"state"`
	Text   string          `json:"text,omitempty"`
	Data   json.RawMessage `json:"data,omitempty"`
	Files  []core.File     `json:"files,omitempty"`
	Error  *core.Fault     `json:"error,omitempty"`
}

func result(t *task.Task) *tool.Result {
	a := t.Answer()
	r := resultOutput{t.ID(), t.State().String(), a.Text, a.Data, a.Files, a.Fault}
	if a.End != 0 {
		r.State = a.End.String()
	}
	return output(r)
}

func runResult(s *Session, call string, raw json.RawMessage) (*tool.Result, error) {
	var in struct {
		TaskID      core.TaskID `json:"task_id"`
		WaitSeconds float64     `json:"wait_seconds"`
	}
	if err := readInput(raw, &in); err != nil {
		return nil, err
	}
	return s.lookUp(call, core.Read{Task: in.TaskID}, func(o outcome) *tool.Result {
		if in.WaitSeconds <= 0 || o.task.State() == task.Ended {
			return result(o.task)
		}
		attach := func() *task.Reader { return o.task.Attach(s.peer(), task.Waiter, answering(call, result), 0) }
		s.waits.add(attach, s.hub.seconds(in.WaitSeconds), func() {
			o := result(o.task)
			o.Call = call
			s.inbox.push(Batch{Tool: o})
		})
		return nil
	})
}

func runReaders(s *Session, call string, raw json.RawMessage) (*tool.Result, error) {
	var in struct {
		TaskID core.TaskID `json:"task_id"`
	}
	if err := readInput(raw, &in); err != nil {
		return nil, err
	}
	return s.lookUp(call, core.Readers{Task: in.TaskID}, func(o outcome) *tool.Result {
		return output(map[string]any{"readers": o.readers})
	})
}

func runNotify(s *Session, call string, raw json.RawMessage) (*tool.Result, error) {
	var in struct {
		To    core.Address    `json:"to"`
		Topic string          `json:"topic"`
		Data  json.RawMessage `json:"data"`
	}
	if err := readInput(raw, &in); err != nil {
		return nil, err
	}
	req := core.Request{Intent: core.IntentNotify, To: in.To, Notice: &core.Notice{Topic: in.Topic, Data: in.Data}}
	return nil, s.openThen(req, OpenOptions{Keep: true, Unwatched: true, tool: notifyName}, call, func(t *task.Task) *tool.Result {
		if a := t.Answer(); a.Fault != nil {
			return &tool.Result{Fault: a.Fault}
		}
		return output(map[string]bool{"delivered": true})
	})
}

func runCancel(s *Session, call string, raw json.RawMessage) (*tool.Result, error) {
	var in struct {
		TaskID core.TaskID `json:"task_id"`
		Reason string      `json:"reason"`
	}
	if err := readInput(raw, &in); err != nil {
		return nil, err
	}
	return s.lookUp(call, core.Cancel{Task: in.TaskID, Reason: in.Reason}, func(outcome) *tool.Result {
		return output(map[string]bool{"cancelled": true})
	})
}

// openThen opens a task for a tool that answers when it has ended.
func (s *Session) openThen(req core.Request, o OpenOptions, call string, then func(*task.Task) *tool.Result) error {
	o.call = call
	t, err := s.Open(req, o)
	if err != nil {
		return err
	}
	s.attach(t, task.Waiter, answering(call, then))
	return nil
}

// answering returns the tag of a reader that answers the call once its task has ended.
func answering(call string, then func(*task.Task) *tool.Result) func(*task.Task) *tool.Result {
	return func(t *task.Task) *tool.Result {
		o := then(t)
		o.Call = call
		return o
	}
}

// lookup is a tool call about a task that is not in memory: a command on the task, and a function
// that makes the result of its outcome.
type lookup struct {
	session *Session
	call    string
	command core.Command
	result  func(outcome) *tool.Result
}

// The limits of lookups: how many may wait for the journal, and how long one may take.
const (
	maxLookups  = 64
	lookupLimit = 5 * time.Second
)

// NoWait is the context of a call that must not wait for the journal or another hub: it has ended.
// What is passed on before the wait is passed on all the same.
var NoWait = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// lookUp answers a tool call with the result of a command on a task: at once if the
// task is in memory, else later, with a nil result now. It returns an overloaded Fault when
// too many calls wait for the journal.
func (s *Session) lookUp(call string, c core.Command, result func(outcome) *tool.Result) (*tool.Result, error) {
	if s.hub.tasks.Get(core.TaskID(c.Object())) != nil {
		o, err := s.hub.do(NoWait, s, core.Call{Principal: s.identity.Principal, Command: c}, nil)
		switch {
		case err == nil:
			return result(o), nil
		case !errors.Is(err, context.Canceled):
			return nil, err
		} // the store has just dropped it
	}
	select {
	case s.hub.lookups <- lookup{s, call, c, result}:
		return nil, nil
	default:
		return nil, core.NewFault(core.CodeOverloaded, "%d calls wait for the journal already: call again later", maxLookups)
	}
}

// readLookups answers lookups until ctx ends, except those of sessions that have closed.
func (h *Hub) readLookups(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case l := <-h.lookups:
			if l.session.Closed() {
				continue
			}
			if o := h.runLookup(ctx, l); o != nil {
				o.Call = l.call
				l.session.inbox.push(Batch{Tool: o})
			}
		}
	}
}

// Closed reports whether the session has ended.
func (s *Session) Closed() bool {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return s.closed
}

func (h *Hub) runLookup(ctx context.Context, l lookup) *tool.Result {
	ctx, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	o, err := h.do(ctx, l.session, core.Call{Principal: l.session.identity.Principal, Command: l.command}, nil)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &tool.Result{Fault: core.NewFault(core.CodeTimeout, "the journal did not answer within %s: call again", lookupLimit)}
	case err != nil:
		return &tool.Result{Fault: core.AsFault(err)}
	}
	return l.result(o)
}
