package command

import (
	"slices"
	"strings"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/lru"
)

// maxCircuits bounds the circuits of agents: beyond it the one used longest ago is
// dropped.
const maxCircuits = 1000

// AgentCircuits are the circuits of the agents (section 21). The reference has one for each
// provider of models. Here the provider is a dialect, in which one broken agent must not
// stop the others, so each agent has its own. AgentCircuits is safe for concurrent use.
type AgentCircuits struct {
	settings Breaker

	mu       sync.Mutex
	circuits *lru.Cache[core.AgentID, *Circuit]
	calls    map[core.TaskID]*AgentCall
}

// AgentCall is one attempt at a task.
type AgentCall struct {
	agent core.AgentID
	// assigned says that the agent has the task. Before that no failure counts against it:
	// it may be busy with other tasks.
	assigned bool
	Call
}

// NewAgentCircuits returns circuits with these settings.
func NewAgentCircuits(b Breaker) *AgentCircuits {
	return &AgentCircuits{settings: b, circuits: lru.New(lru.Options[core.AgentID, *Circuit]{Count: maxCircuits}), calls: map[core.TaskID]*AgentCall{}}
}

// circuitOf returns the circuit of an agent, a new one if it has none. cs.mu is held.
func (cs *AgentCircuits) circuitOf(id core.AgentID) *Circuit {
	c, ok := cs.circuits.Get(id)
	if !ok {
		c = NewCircuit(string(id), cs.settings)
	}
	cs.circuits.Put(id, c)
	return c
}

// Allow checks the circuit of the agent that is about to get a task. The call is nil where
// the hub chooses the agent. It returns an overloaded Fault when the circuit is open.
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

// Bind notes the task of a call. The task is "" when the hub refused it, which says nothing
// about the agent.
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

// Observe counts successes and failures of agents by the events of a task.
func (cs *AgentCircuits) Observe(task core.TaskID, e core.Event) {
	switch e.Body.(type) {
	case core.Assigned, core.Retrying, core.Done, core.Failed, core.Cancelled:
	default: // most events are text; they need no lock
		return
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	switch b := e.Body.(type) {
	case core.Assigned:
		if k := cs.calls[task]; k != nil && k.agent == b.Agent {
			k.assigned = true // Allow let it through
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

// end ends the call of a task. cs.mu is held.
func (cs *AgentCircuits) end(task core.TaskID, err error) {
	if k := cs.calls[task]; k != nil {
		delete(cs.calls, task)
		if !k.assigned {
			err = ErrInconclusive
		}
		k.End(err)
	}
}

// verdict returns the result of a call that failed with f. Requests that the agent may not
// or cannot serve, or that were over budget, are inconclusive.
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

// Report returns the numbers of all circuits, ordered by agent.
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
