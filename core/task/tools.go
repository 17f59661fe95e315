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

// isOpen reports whether a tool call of the task has no result. Callers hold mu.
func (t *Task) isOpen(id string) bool { return t.call(id) != nil }

// Closing returns how the tool calls and the questions of a task that are still open stand once it ends with
// a body, in their order. Every reader then knows of each that it has ended, and the journal does, too.
func Closing(events iter.Seq[core.Event], end core.Body) []core.Body {
	m := newMachine()
	for e := range events {
		m.apply(e)
	}
	return m.closing(end)
}

// closing is Closing for the events so far.
func (m *machine) closing(end core.Body) (ends []core.Body) {
	for _, call := range m.calls {
		s := core.ToolState{ID: call.id, State: core.ToolFailed, Detail: "the agent did not tell its result"}
		failed, _ := end.(core.Failed)
		switch {
		case call.denied:
			s.State, s.Detail = core.ToolDenied, call.why
		case end.Kind() == core.KindCancelled:
			s.State, s.Detail = core.ToolCancelled, ""
		case failed.Fault != nil && failed.Fault.Code == core.CodeTimeout:
			s.State, s.Detail = core.ToolTimeout, "the task timed out"
		case call.waits:
			s.Detail = "the task ended before anybody decided on it"
		}
		ends = append(ends, s)
	}
	for _, id := range m.questions {
		ends = append(ends, core.QuestionAnswered{ID: id, Reason: core.QuestionTaskEnded})
	}
	return ends
}

// close appends how what is still open stands once the task ends with a body. Callers hold mu.
func (t *Task) close(end core.Body) {
	for _, b := range t.closing(end) {
		t.append(b, nil)
	}
}

// openCall is a tool call without a result.
type openCall struct {
	id     string
	waits  bool // for a decision
	denied bool
	why    string // it was denied
}

// call returns an open call; nil if there is none.
func (m *machine) call(id string) *openCall {
	for i := range m.calls {
		if m.calls[i].id == id {
			return &m.calls[i]
		}
	}
	return nil
}

// open returns the open call with the id, a new one if there is none.
func (m *machine) open(id string) *openCall {
	if call := m.call(id); call != nil {
		return call
	}
	m.calls = append(m.calls, openCall{id: id})
	return &m.calls[len(m.calls)-1]
}

// applyCall moves the open calls by the next event.
func (m *machine) applyCall(e core.Event) {
	end := func(id string) {
		m.calls = slices.DeleteFunc(m.calls, func(c openCall) bool { return c.id == id })
	}
	switch b := e.Body.(type) {
	case core.ToolCall:
		m.open(b.ID)
	case core.ApprovalRequested:
		call := m.open(b.ID)
		call.waits, call.denied = true, false // some ask again
	case core.ApprovalDecided:
		if call := m.call(b.ID); call != nil {
			if call.waits = false; !b.Approved {
				call.denied, call.why = true, b.Reason
			}
		}
	case core.ToolState:
		if b.State > core.ToolRunning {
			end(b.ID)
			return
		}
		call := m.open(b.ID)
		call.waits = call.waits && b.State == core.ToolAwaitingApproval
	case core.ToolResult:
		end(b.ID)
	}
}
