package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/task"
)

// pollEvery is how often a client is to ask for the state of a task.
const pollEvery = time.Second

// keptAfter is how long after its deadline a task can be asked for at least, unless the
// journal is full.
const keptAfter = time.Hour

// taskState is a task of the hub in the words of the extension io.modelcontextprotocol/tasks.
type taskState struct {
	ID      core.TaskID `json:"taskId"`
	Status  string      `json:"status"`
	Message string      `json:"statusMessage,omitempty"`
	Created time.Time   `json:"createdAt"`
	Updated time.Time   `json:"lastUpdatedAt"`
	TTL     int64       `json:"ttlMs"`
	Poll    int64       `json:"pollIntervalMs,omitempty"`
	// Requests are what the task waits for, Result is the result of the call once it has
	// ended.
	Requests map[string]wire.ElicitRequest `json:"inputRequests,omitempty"`
	Result   *callResult                   `json:"result,omitempty"`
}

// The states of a task.
const (
	taskWorking   = "working"
	taskWaits     = wire.ResultInputRequired
	taskCompleted = "completed"
	taskCancelled = "cancelled"
)

// stateOf returns the state of a task for the sender of a request. A task that has failed is
// completed with a failed result: only errors of the protocol are failures of a task.
func (s *Server) stateOf(q *request, t *task.Task) taskState {
	log := t.Log()
	first, last := log.At(0), t.Last()
	out := taskState{ID: t.ID(), Status: taskWorking, Created: first.At.UTC(), Updated: last.At.UTC(), Poll: pollEvery.Milliseconds()}
	if due := t.Request().Deadline; !due.IsZero() {
		out.TTL = due.Add(keptAfter).Sub(first.At).Milliseconds()
	}
	if t.State() == task.Ended {
		out.Poll = 0
		o := outcomeOfTask(t)
		if a, cancelled := last.Body.(core.Cancelled); cancelled {
			out.Status, out.Message = taskCancelled, cmp.Or(a.Reason, "cancelled")
			return out
		}
		if o.fault != nil {
			out.Message = o.fault.Error()
		}
		r := s.resultOf(q, o)
		r.head = head{Type: wire.ResultComplete}
		out.Status, out.Result = taskCompleted, &r
		return out
	}
	if t.State() == task.Queued {
		out.Message = "waits for an agent"
	} else if agent := t.Agent(); agent != "" {
		out.Message = string(agent) + " works on it"
	}
	if inputs := s.inputsOf(q, string(t.ID()), t); len(inputs) > 0 {
		out.Message = inputs[0].brief()
		if q.elicits {
			out.Status, out.Requests = taskWaits, requests(inputs, q.version)
		}
	}
	return out
}

// createdTask answers a call with a task.
type createdTask struct {
	head
	taskState
}

// handOver answers a call with its task, once the journal has it. It returns nil while that is
// not so, or if too many tasks are followed.
func (c *exchange) handOver(ctx context.Context) any {
	ctx, cancel := context.WithTimeout(ctx, c.server.opts.TaskAfter)
	defer cancel()
	r := c.run
	if c.server.hub.Recorded(ctx, r.task, 1) != nil {
		return nil
	}
	state := c.server.stateOf(c.request, r.task)
	if !c.request.holder.keep(r) {
		return nil
	}
	state.Requests, state.Result = nil, nil // tasks/get has them
	if state.Status != taskWaits {
		state.Status = taskWorking
	}
	return createdTask{c.server.head(c.request, wire.ResultTask), state}
}

// keep reads on for a run that the client follows as a task, until it has ended: its session
// shows the questions of the task to somebody. It reports false if there are too many.
func (h *holder) keep(r *run) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gone != nil || len(h.kept) >= h.limits.MaxTasks {
		return false
	}
	h.kept[r] = struct{}{}
	r.release = r.session.Consume(context.Background(), func(b hub.Batch, err error) bool {
		if r.take(b); err == nil && r.result == nil {
			return true
		}
		h.mu.Lock()
		delete(h.kept, r)
		h.mu.Unlock()
		r.close(nil)
		return false
	})
	return true
}

// taskOf returns the task that a request is about. A task that the sender may not read is
// unknown to it, as is one that is no longer kept.
func (s *Server) taskOf(q *request, id core.TaskID) (*task.Task, *jsonrpc.Error) {
	if bad := q.needsTasks(); bad != nil {
		return nil, bad
	}
	if id == "" {
		return nil, badParams("taskId: missing; send the id of a task")
	}
	ctx, cancel := context.WithTimeout(q.http.Context(), 5*time.Second)
	defer cancel()
	t, err := s.hub.Task(ctx, q.principal(), id)
	switch f := core.AsFault(err); {
	case f == nil:
		return t, nil
	case f.Code == core.CodeUnknownTask, f.Code == core.CodeNotAuthorized, f.Code == core.CodeInvalid:
		return nil, badParams("task %.100q is unknown or has expired", id)
	case f.Code == core.CodeTimeout:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the journal did not answer in time: ask again"}
	default:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: f.Message}
	}
}

// needsTasks refuses a request of a client that did not declare the tasks extension.
func (q *request) needsTasks() *jsonrpc.Error {
	if q.tasks {
		return nil
	}
	return &jsonrpc.Error{
		Code: wire.CodeMissingCapability, Message: "missing required client capability: declare the extension " + wire.ExtensionTasks,
		Data: json.RawMessage(`{"requiredCapabilities":{"extensions":{"` + wire.ExtensionTasks + `":{}}}}`),
	}
}

// taskParams are the parameters of the methods about a task.
type taskParams struct {
	Task      core.TaskID                 `json:"taskId"`
	Responses map[string]strictjson.Value `json:"inputResponses"`
}

// aboutTask is a method about a task that the client may read.
func aboutTask(do func(s *Server, q *request, t *task.Task, p taskParams) (any, *jsonrpc.Error)) method {
	return func(s *Server, q *request, _ *reply) (any, *jsonrpc.Error) {
		var p taskParams
		if bad := q.read(&p); bad != nil {
			return nil, bad
		}
		t, bad := s.taskOf(q, p.Task)
		if bad != nil {
			return nil, bad
		}
		return do(s, q, t, p)
	}
}

// getTask returns the state of a task.
func (s *Server) getTask(q *request, t *task.Task, _ taskParams) (any, *jsonrpc.Error) {
	return createdTask{s.head(q, wire.ResultComplete), s.stateOf(q, t)}, nil
}

// updateTask takes answers of the user to what a task waits for.
func (s *Server) updateTask(q *request, t *task.Task, p taskParams) (any, *jsonrpc.Error) {
	var denied string
	if bad := settleAll(q.http.Context(), q.holder.session, t.ID(), s.inputsOf(q, string(t.ID()), t), p.Responses, func(key string) { denied = key }); bad != nil {
		return nil, bad
	}
	if denied != "" {
		return nil, badParams("inputResponses: %s: you may not decide that", denied)
	}
	return s.head(q, wire.ResultComplete), nil
}

// cancelTask asks that a task be stopped. A task that has ended stays as it is.
func (s *Server) cancelTask(q *request, t *task.Task, _ taskParams) (any, *jsonrpc.Error) {
	err := q.holder.session.Cancel(t.ID(), "the client cancelled the task")
	if f := core.AsFault(err); f != nil && f.Code == core.CodeNotAuthorized {
		return nil, badParams("task %.100q: %s", t.ID(), f.Message)
	}
	return s.head(q, wire.ResultComplete), nil
}
