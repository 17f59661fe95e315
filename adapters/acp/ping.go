package acp

import (
	"context"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// pingTimeout is how long an ACP agent has to answer a ping of another peer.
const pingTimeout = 5 * time.Second

// ping answers a ping of the hub, and forwards one of another ACP agent. For an agent of
// another dialect, for the peer itself and for a peer that has not declared itself an
// agent, the hub answers with what it knows.
func (s *session) ping(ctx context.Context, e wire.Envelope) error {
	agent, err := s.recipient(e)
	switch {
	case err != nil:
		return s.refuseIf(ctx, e, err)
	case agent == nil:
		return s.answer(ctx, wire.KindPong, e.ID, s.hubPong())
	}
	if _, listed := s.hub.Agent(s.principal, agent.ID); listed && agent.Dialect == Dialect && agent.ID != s.peer.id {
		return s.refuseIf(ctx, e, s.passOn(ctx, e, core.ToAgent(agent.ID), time.Now().Add(pingTimeout)))
	}
	return s.answer(ctx, wire.KindPong, e.ID, wire.Pong{
		Status: statusOf(agent.Load.State), UptimeSecs: seconds(agent.Since), ActiveTasks: int64(agent.Load.Active), AgentName: agent.Name,
	})
}

// passOn opens a task for an envelope that passes through the hub. A zero deadline is the
// default. The answer comes back unchanged.
func (s *session) passOn(ctx context.Context, e wire.Envelope, to core.Address, deadline time.Time) error {
	notice := &core.Notice{Topic: "acp." + string(e.Kind), Data: e.Payload}
	req := core.Request{Intent: core.IntentNotify, To: to, Deadline: deadline, Notice: notice}
	return s.open(ctx, e, req, &request{id: e.ID, kind: e.Kind, reports: true}, false)
}

// pong takes the load from an agent's pong, and forwards the pong to the peer that sent
// the ping. A pong that answers an unknown kind says nothing about the load.
func (s *session) pong(ctx context.Context, e wire.Envelope) error {
	a, ended := s.assigned(e.Ref)
	if a != nil && a.kind.Passes() && !ended {
		s.passBack(a, e)
	}
	if a != nil && !a.kind.Known() {
		return nil
	}
	var p wire.Pong
	if err := e.Read(&p); err != nil {
		return s.refuseIf(ctx, e, err)
	}
	load, known := loads[p.Status]
	s.mu.Lock()
	known = known && !s.draining
	s.overloaded = known && load == core.LoadOverloaded
	s.mu.Unlock()
	if known {
		s.self.SetLoad(load)
	}
	return nil
}

// loads are the states of pong.
var loads = map[string]core.LoadState{"idle": core.LoadIdle, "busy": core.LoadBusy, "overloaded": core.LoadOverloaded}

// statusOf returns a load as one of the states of pong.
func statusOf(l core.LoadState) string {
	for status, load := range loads {
		if load == l {
			return status
		}
	}
	if l == core.LoadDraining {
		return "overloaded"
	}
	return "idle"
}

// passBack forwards an answer to an envelope that passed through the hub. The first one that
// is not progress ends the task.
func (s *session) passBack(a *assignment, e wire.Envelope) {
	s.report(a, core.ForeignFrame{Dialect: Dialect, Name: string(e.Kind)}, e.Raw)
	if e.Kind == wire.KindProgress {
		return
	}
	s.end(a, []core.Body{core.Done{}}, nil)
}

// clearOverload clears the overload that a pong declared, since the peer has ended a task.
// There may never be another pong.
func (s *session) clearOverload() {
	s.mu.Lock()
	full := s.overloaded
	s.overloaded = false
	s.mu.Unlock()
	if full {
		s.self.SetLoad(core.LoadIdle)
	}
}
