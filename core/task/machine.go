package task

import (
	"cmp"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// State is the state of a task. The zero State is unset.
type State uint8

// The states.
const (
	_       State = iota
	Queued        // it waits for an agent
	Running       // an agent works on it
	Ended         // its last event is its end
)

// String returns the state in a word.
func (s State) String() string { return [...]string{"", "queued", "running", "ended"}[s] }

// MarshalText implements encoding.TextMarshaler.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// machine is the state machine of a task: where it stands by its events. It is the same at the hub that owns
// the task, at every hub that has a copy, and once the journal is read. It has no lock, clock or channel:
// what a state asks of the hub, and by when, is [Task.act].
type machine struct {
	state      State
	epoch      uint32
	agent      core.AgentID // it works or worked on the task; "" before it was assigned
	attempt    int
	owner      string // the hub that the last record of a move names; "" for the one that opened it
	output     bool   // an agent has answered something
	cancelling bool   // a cancel was requested
	reason     string // of the cancel
	receipt    core.Receipt
	questions  []string   // those that wait for people, in order
	calls      []openCall // in order
	approvals
}

// newMachine returns the state of a task before its first event.
func newMachine() machine { return machine{state: Queued, epoch: 1} }

// apply moves the machine by the next event.
func (m *machine) apply(e core.Event) {
	m.epoch = e.Epoch
	switch b := e.Body.(type) {
	case core.Opened:
		m.receive(e.At)
	case core.Assigned:
		m.state, m.agent, m.attempt = Running, b.Agent, b.Attempt
	case core.Accepted:
		m.reach(core.StageAcknowledged, e.At)
	case core.Retrying:
		m.state = Queued
		m.receive(e.At)
		m.owner = cmp.Or(b.Hub, m.owner)
	case core.CancelRequested:
		m.cancelling, m.reason = true, b.Reason
	case core.QuestionAsked:
		m.questions = append(m.questions, b.ID)
	case core.QuestionAnswered:
		m.questions = slices.DeleteFunc(m.questions, func(id string) bool { return id == b.ID })
	case core.ToolCall, core.ToolState, core.ToolResult, core.ApprovalRequested, core.ApprovalDecided:
		m.applyCall(e)
		m.approvals.apply(e)
	}
	switch k := e.Body.Kind(); {
	case k.Ends():
		m.state = Ended
		m.pending, m.questions, m.calls = nil, nil, nil
	case k.Output():
		m.output = true
		if m.receipt.Stage < core.StageDelivered { // an agent that answers has got it; only the owner knows that earlier
			m.reach(core.StageDelivered, e.At)
		}
	}
}

// receive begins the receipt of a task that no agent has.
func (m *machine) receive(at time.Time) {
	m.receipt = core.Receipt{Stage: core.StageAccepted, At: at}
}

// reach raises the receipt to a stage that the agent has reached.
func (m *machine) reach(stage core.Stage, at time.Time) {
	m.receipt.Stage, m.receipt.Agent, m.receipt.At = stage, m.agent, at
}

// waits reports whether people are waited for.
func (m *machine) waits() bool { return len(m.pending)+len(m.questions) > 0 }

// approvals are the approvals of one task by the id of the tool call.
type approvals struct {
	pending  map[string]pendingCall
	decided  map[string]decidedCall
	allowAll string // the principal that approved all tools of the task
}

// pendingCall is a tool call without a decision.
type pendingCall struct {
	asked core.ApprovalRequested
	since time.Time
	// changed says that the agent asked for another input under the same id before: then a
	// decision must say which one it is for.
	changed bool
}

// decidedCall is the decision on a tool call with an input, which its SHA-256 names. One by nobody is of a call
// that its agent continued or gave up without a decision.
type decidedCall struct {
	core.ApprovalDecided
	input string
}

// apply moves the approvals by the next event.
func (a *approvals) apply(e core.Event) {
	switch b := e.Body.(type) {
	case core.ApprovalRequested:
		a.await(b, e.At)
	case core.ApprovalDecided:
		a.settle(b)
	case core.ToolState:
		if b.State >= core.ToolRunning {
			a.settle(core.ApprovalDecided{ID: b.ID})
		}
	case core.ToolResult:
		a.settle(core.ApprovalDecided{ID: b.ID})
	}
}

// await adds a pending approval; one with another input takes the place of that with the same id.
func (a *approvals) await(asked core.ApprovalRequested, since time.Time) {
	earlier, pending := a.pending[asked.ID]
	if pending && earlier.asked.InputSHA256 == asked.InputSHA256 {
		return
	}
	if a.pending == nil {
		a.pending = map[string]pendingCall{}
	}
	before, decided := a.decided[asked.ID]
	delete(a.decided, asked.ID)
	a.pending[asked.ID] = pendingCall{asked: asked, since: since, changed: pending || decided && before.input != asked.InputSHA256}
}

// settle notes the decision on a call that is pending.
func (a *approvals) settle(d core.ApprovalDecided) {
	p, pending := a.pending[d.ID]
	if !pending {
		return
	}
	delete(a.pending, d.ID)
	if a.decided == nil {
		a.decided = map[string]decidedCall{}
	}
	a.decided[d.ID] = decidedCall{d, p.asked.InputSHA256}
	if d.Approved && d.All {
		a.allowAll = d.By
	}
}

// inOrder returns the calls without a decision, oldest first.
func (a *approvals) inOrder() []pendingCall {
	all := make([]pendingCall, 0, len(a.pending))
	for _, p := range a.pending {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b pendingCall) int {
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.asked.ID, b.asked.ID))
	})
	return all
}
