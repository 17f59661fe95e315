package command

import (
	"slices"
	"strings"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/lru"
)

// maxCircuits bounds how many agents have a circuit: beyond it the one that was
// asked the longest ago is forgotten.
const maxCircuits = 1000

// AgentCircuits are the breakers of the agents (section 21). The reference has one for
// each provider of models; here the provider is a dialect, in which one broken agent
// must not stop the others, so that each agent has its own. They are safe for concurrent use.
type AgentCircuits struct {
	settings Breaker

	mu       sync.Mutex
	circuits *lru.Cache[core.AgentID, *Circuit]
	calls    map[core.TaskID]*AgentCall
}

// AgentCall is one attempt at a task.
type AgentCall struct {
	agent core.AgentID
	// has says that the agent has the task: before that it is to blame for nothing,
	// since it may be busy with others for good reason.
	assigned bool
	Call
}

// NewAgentCircuits makes the circuits of agents.
func NewAgentCircuits(b Breaker) *AgentCircuits {
	return &AgentCircuits{settings: b, circuits: lru.New(lru.Options[core.AgentID, *Circuit]{Count: maxCircuits}), calls: map[core.TaskID]*AgentCall{}}
}

// circuitOf returns the circuit of an agent, making it if need be. circuits.mu is held.
func (cs *AgentCircuits) circuitOf(id core.AgentID) *Circuit {
	c, ok := cs.circuits.Get(id)
	if !ok {
		c = NewCircuit(string(id), cs.settings)
	}
	cs.circuits.Put(id, c)
	return c
}

// Allow asks the circuit of the agent that is about to be asked: none where the hub
// is to choose one. It returns nil and an overloaded Fault when that is open.
func (cs *AgentCircuits) Allow(to core.Address) (*AgentCall, error) {
	id := to.Agent()
	if id == "" {
		return nil, nil
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	k, why := cs.circuitOf(id).Allow()
	if why != "" {
		return nil, core.NewFault(core.CodeOverloaded, "Circuit breaker open: %s", why)
	}
	return &AgentCall{agent: id, Call: k}, nil
}

// Bind notes which task a call became; task is nil when the hub took none, which
// says nothing about the agent.
func (cs *AgentCircuits) Bind(k *AgentCall, task core.TaskID) {
	switch {
	case k == nil:
	case task == "":
		k.End(ErrInconclusive)
	default:
		cs.mu.Lock()
		defer cs.mu.Unlock()
		cs.calls[task] = k
	}
}

// Observe learns from the events of a task how the agents do that have it.
func (cs *AgentCircuits) Observe(task core.TaskID, e core.Event) {
	switch e.Body.(type) {
	case core.Assigned, core.Retrying, core.Done, core.Failed, core.Cancelled:
	default: // most are pieces of text, which say nothing of it
		return
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	switch b := e.Body.(type) {
	case core.Assigned:
		if k := cs.calls[task]; k != nil && k.agent == b.Agent {
			k.assigned = true // it was let through when it was asked
			return
		}
		cs.end(task, ErrInconclusive)
		if k, why := cs.circuitOf(b.Agent).Allow(); why == "" {
			cs.calls[task] = &AgentCall{b.Agent, true, k}
		}
	case core.Retrying:
		cs.end(task, verdict(b.Fault))
	case core.Done:
		cs.end(task, nil)
	case core.Failed:
		cs.end(task, verdict(b.Fault))
	case core.Cancelled:
		cs.end(task, ErrInconclusive)
	}
}

// end ends the call that a task is. circuits.mu is held.
func (cs *AgentCircuits) end(task core.TaskID, err error) {
	if k := cs.calls[task]; k != nil {
		delete(cs.calls, task)
		if !k.assigned {
			err = ErrInconclusive
		}
		k.End(err)
	}
}

// blame says whether the agent is to blame for a failure: not for what it was asked
// that it cannot or may not do, and not for what it could not afford.
func verdict(f *core.Fault) error {
	if f == nil {
		return ErrFailure
	}
	switch f.Code {
	case core.CodeUnreachable, core.CodeInternal, core.CodeTimeout:
		return ErrFailure
	default:
		return ErrInconclusive
	}
}

// Report returns the numbers of all circuits, by the ids of their agents.
func (cs *AgentCircuits) Report() []CircuitReport {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	list := []CircuitReport{}
	for _, c := range cs.circuits.All() {
		list = append(list, c.Report())
	}
	slices.SortFunc(list, func(a, b CircuitReport) int { return strings.Compare(a.ProviderName, b.ProviderName) })
	return list
}
