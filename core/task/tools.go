package task

import (
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
	if t.state == Running && slices.Contains(t.openTools(), id) {
		t.append(core.ToolState{ID: id, State: core.ToolTimeout, Detail: "the hub gave up waiting"}, nil)
	}
}

// ProgressTool reports the progress of a tool call, if the task runs and the call is open. It
// reports whether it did.
func (t *Task) ProgressTool(id, detail string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	open := t.state == Running && slices.Contains(t.openTools(), id)
	if open {
		t.append(core.ToolState{ID: id, State: core.ToolRunning, Detail: detail}, nil)
	}
	return open
}

// openTools returns the ids of the tool calls without a result, in order. Callers hold mu.
func (t *Task) openTools() []string {
	var ids []string
	open := map[string]bool{}
	is := func(id string, now bool) {
		if _, known := open[id]; !known {
			ids = append(ids, id)
		}
		open[id] = now
	}
	for e := range t.log.All() {
		switch b := e.Body.(type) {
		case core.ToolCall:
			is(b.ID, true)
		case core.ApprovalRequested:
			is(b.ID, true)
		case core.ToolState:
			is(b.ID, b.State <= core.ToolRunning)
		case core.ToolResult:
			is(b.ID, false)
		}
	}
	return slices.DeleteFunc(ids, func(id string) bool { return !open[id] })
}

// timeOutTools reports a timeout for every open tool call of a task that timed out. Callers
// hold mu.
func (t *Task) timeOutTools() {
	for _, id := range t.openTools() {
		t.append(core.ToolState{ID: id, State: core.ToolTimeout, Detail: "the deadline of the task passed"}, nil)
	}
}
