package pi

import "github.com/dragoman-hub/dragoman/core"

// maxCircuits bounds how many agents have a circuit: beyond it the one that was
// asked the longest ago is forgotten.
const maxCircuits = 1000

// circuits are the breakers of the agents (section 21). The reference has one for
// each provider of models; here the provider is a dialect, in which one broken agent
// must not stop the others, so that each agent has its own. Server.mu guards them.
type circuits struct {
	how   Breaker
	of    map[core.AgentID]*circuit
	calls map[core.TaskID]*agentCall
}

// agentCall is one attempt at a task.
type agentCall struct {
	agent core.AgentID
	// has says that the agent has the task: before that it is to blame for nothing,
	// since it may be busy with others for good reason.
	has bool
	call
}

func newCircuits(b Breaker) circuits {
	return circuits{b, map[core.AgentID]*circuit{}, map[core.TaskID]*agentCall{}}
}

// circuit returns the circuit of an agent, making it if need be.
func (cs *circuits) circuit(id core.AgentID) *circuit {
	c := cs.of[id]
	if c != nil {
		return c
	}
	if len(cs.of) >= maxCircuits {
		var oldest core.AgentID
		for id, c := range cs.of {
			if o := cs.of[oldest]; o == nil || c.lastAccess.Before(o.lastAccess) {
				oldest = id
			}
		}
		delete(cs.of, oldest)
	}
	c = newCircuit(string(id), cs.how)
	cs.of[id] = c
	return c
}

// allow asks the circuit of the agent that is about to be asked: none where the hub
// is to choose one. It returns nil and an overloaded Fault when that is open.
func (cs *circuits) allow(to core.Address) (*agentCall, error) {
	id := to.Agent()
	if id == "" {
		return nil, nil
	}
	k, why := cs.circuit(id).allow()
	if why != "" {
		return nil, core.NewFault(core.CodeOverloaded, "Circuit breaker open: %s", why)
	}
	return &agentCall{agent: id, call: k}, nil
}

// asked notes which task a call became; task is nil when the hub took none, which
// says nothing about the agent.
func (cs *circuits) asked(k *agentCall, task core.TaskID) {
	switch {
	case k == nil:
	case task == "":
		k.end(errNeither)
	default:
		cs.calls[task] = k
	}
}

// follow learns from the events of a task how the agents do that have it.
func (cs *circuits) follow(task core.TaskID, e core.Event) {
	switch b := e.Body.(type) {
	case core.Assigned:
		if k := cs.calls[task]; k != nil && k.agent == b.Agent {
			k.has = true // it was let through when it was asked
			return
		}
		cs.end(task, errNeither)
		if k, why := cs.circuit(b.Agent).allow(); why == "" {
			cs.calls[task] = &agentCall{b.Agent, true, k}
		}
	case core.Retrying:
		cs.end(task, blame(b.Fault))
	case core.Done:
		cs.end(task, nil)
	case core.Failed:
		cs.end(task, blame(b.Fault))
	case core.Cancelled:
		cs.end(task, errNeither)
	}
}

func (cs *circuits) end(task core.TaskID, err error) {
	if k := cs.calls[task]; k != nil {
		delete(cs.calls, task)
		if !k.has {
			err = errNeither
		}
		k.end(err)
	}
}

// blame says whether the agent is to blame for a failure: not for what it was asked
// that it cannot or may not do, and not for what it could not afford.
func blame(f *core.Fault) error {
	if f == nil {
		return errFailure
	}
	switch f.Code {
	case core.CodeUnreachable, core.CodeInternal, core.CodeTimeout:
		return errFailure
	default:
		return errNeither
	}
}

// anyOpen reports whether some agent's circuit is open.
func (cs *circuits) anyOpen() bool {
	for _, c := range cs.of {
		if c.isOpen() {
			return true
		}
	}
	return false
}
