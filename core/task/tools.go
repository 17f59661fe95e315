package task

import (
	"iter"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
)

// HasToolCall reports whether the log has a tool call with this id.
func (t *Task) HasToolCall(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for e := range t.log.All() {
		if c, ok := e.Body.(core.ToolCall); ok && c.ID == id {
			return true
		}
	}
	return false
}

// TimeOutTool reports that the hub stopped waiting for a tool call, if the task runs and the
// call is open.
func (t *Task) TimeOutTool(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state == Running && t.isOpen(id) {
		t.append(core.ToolState{ID: id, State: core.ToolTimeout, Detail: "the hub gave up waiting"}, nil)
	}
}

// ProgressTool reports the progress of a tool call, if the task runs and the call is open. It
// reports whether it did.
func (t *Task) ProgressTool(id, detail string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	open := t.state == Running && t.isOpen(id)
	if open {
		t.append(core.ToolState{ID: id, State: core.ToolRunning, Detail: detail}, nil)
	}
	return open
}

// Closing returns how the tool calls and the questions of a task that are still open stand once it ends with
// a body, in their order. Every reader then knows of each that it has ended, and the journal does, too.
func Closing(events iter.Seq[core.Event], end core.Body) (ends []core.Body) {
	for _, call := range openTools(events) {
		s := core.ToolState{ID: call.id, State: core.ToolFailed, Detail: "the agent did not tell its result"}
		failed, _ := end.(core.Failed)
		switch {
		case call.denied != nil:
			s.State, s.Detail = core.ToolDenied, call.denied.Reason
		case end.Kind() == core.KindCancelled:
			s.State, s.Detail = core.ToolCancelled, ""
		case failed.Fault != nil && failed.Fault.Code == core.CodeTimeout:
			s.State, s.Detail = core.ToolTimeout, "the task timed out"
		case call.waits:
			s.Detail = "the task ended before anybody decided on it"
		}
		ends = append(ends, s)
	}
	for _, id := range openQuestions(events) {
		ends = append(ends, core.QuestionAnswered{ID: id, Reason: core.QuestionTaskEnded})
	}
	return ends
}

// close reports the end of every open tool call and question of a task that ends. Callers hold mu.
func (t *Task) close(end core.Body) {
	for _, b := range Closing(t.log.All(), end) {
		t.append(b, nil)
	}
}

// openTool is a tool call, which has no result as long as it is open.
type openTool struct {
	id     string
	open   bool
	denied *core.ApprovalDecided // the decision on it; nil unless it was denied
	waits  bool                  // for a decision
}

// isOpen reports whether a tool call of the task has no result. Callers hold mu.
func (t *Task) isOpen(id string) bool {
	return slices.ContainsFunc(openTools(t.log.All()), func(o *openTool) bool { return o.id == id })
}

// openTools returns the tool calls without a result, in order.
func openTools(events iter.Seq[core.Event]) (all []*openTool) {
	var byID map[string]*openTool // few tasks have tools
	is := func(id string, open bool) *openTool {
		call := byID[id]
		if call == nil {
			if byID == nil {
				byID = map[string]*openTool{}
			}
			call = &openTool{id: id}
			byID[id], all = call, append(all, call)
		}
		call.open = open
		return call
	}
	for e := range events {
		switch b := e.Body.(type) {
		case core.ToolCall:
			is(b.ID, true)
		case core.ApprovalRequested:
			call := is(b.ID, true)
			call.denied, call.waits = nil, true // some ask again
		case core.ApprovalDecided:
			if call := byID[b.ID]; call != nil {
				if call.waits = false; !b.Approved {
					call.denied = &b
				}
			}
		case core.ToolState:
			call := is(b.ID, b.State <= core.ToolRunning)
			call.waits = call.waits && b.State == core.ToolAwaitingApproval
		case core.ToolResult:
			is(b.ID, false)
		}
	}
	return slices.DeleteFunc(all, func(call *openTool) bool { return !call.open })
}
