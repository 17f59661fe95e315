package hub

import (
	"context"
	"iter"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
)

// InTrace says in which trace the session asks and calls tools from now on, where
// [OpenOptions.Trace] does not. The goroutine that calls it is the only one that asks.
func (s *Session) InTrace(t core.Trace) { s.trace = t }

// opening returns what decides the trace of a task that has the causes. Of these it is the one
// that shows the call of the tool which opens it, else the first.
func (h *Hub) opening(given core.Trace, causes []cause, o *core.Open) policy.Opening {
	op := policy.Opening{Given: given, IsCaused: len(causes) > 0, Tool: o.Tool, IsNotice: o.Request.Intent == core.IntentNotify}
	if len(causes) == 0 {
		return op
	}
	if t := h.tasks.Get(causes[0].task); t != nil {
		op.Cause = t.Trace()
	}
	if o.ToolCall == "" {
		return op
	}
	for _, c := range causes {
		if t := h.tasks.Get(c.task); t != nil && t.HasToolCall(o.ToolCall) {
			op.Cause, op.Call = t.Trace(), o.ToolCall
			break
		}
	}
	return op
}

// TraceOf returns the trace of an execution, for a pack that carries it on: that which its caller
// brought, else that of the call in the task that shows it, else that of a task of its caller; zero
// for none.
func (s *Session) TraceOf(execution string) core.Trace {
	call, err := s.hub.packs.Caller(s.peer(), execution)
	if err != nil {
		return core.Trace{} // nobody waits for it
	}
	of := call.Trace
	if of.Parent != "" {
		return of
	}
	for _, id := range call.Tasks {
		t := s.hub.tasks.Get(id)
		switch {
		case t == nil:
		case t.HasToolCall(call.ID) && s.hub.tracer != nil:
			return s.hub.tracer.Tool(t.Trace(), call.ID)
		case of == core.Trace{}:
			of = t.Trace()
		}
	}
	return of
}

// TraceID returns the id of the trace that a task in memory is in; "" if there is none.
func (h *Hub) TraceID(id core.TaskID) string {
	if t := h.tasks.Get(id); t != nil {
		return t.Trace().TraceID()
	}
	return ""
}

// Ended returns the events of a task that has ended, for what is made of them beside the hub, such
// as traces. It may wait for the journal, and returns the errors of [Hub.Task], except that
// everything may be read.
func (h *Hub) Ended(ctx context.Context, id core.TaskID) (iter.Seq[core.Event], error) {
	t, err := h.findHere(ctx, id)
	if err != nil {
		return nil, err
	}
	log := t.Log()
	return log.All(), nil
}
