package acp

import (
	"context"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
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
		return s.unlessRefused(ctx, e, err)
	case agent == nil:
		return s.answer(ctx, wire.KindPong, e.ID, s.hubPong())
	}
	if _, listed := s.hub.Agent(agent.ID); listed && agent.Dialect == Dialect && agent.ID != s.peer.id {
		return s.unlessRefused(ctx, e, s.forwardPing(e, agent))
	}
	return s.answer(ctx, wire.KindPong, e.ID, wire.Pong{
		Status: statusOf(agent.Load.State), UptimeSecs: seconds(agent.Since), ActiveTasks: int64(agent.Load.Active), AgentName: agent.Name,
	})
}

// forwardPing forwards a ping to an ACP agent. Its pong comes back unchanged.
func (s *session) forwardPing(e wire.Envelope, agent *hub.AgentStatus) error {
	req := core.Request{
		Intent: core.IntentNotify, To: core.ToAgent(agent.ID), Deadline: time.Now().Add(pingTimeout), Notice: passing(e),
	}
	return s.open(e, req, &asked{id: e.ID, kind: wire.KindPing, reports: true}, false)
}

// passing is the notice that stands in the hub for an envelope that passes through.
func passing(e wire.Envelope) *core.Notice {
	return &core.Notice{Topic: "acp." + string(e.Kind), Data: e.Payload}
}

// pong takes the load from an agent's pong, and forwards the pong to the peer that sent
// the ping. A pong that answers an unknown kind says nothing about the load.
func (s *session) pong(ctx context.Context, e wire.Envelope) error {
	s.mu.Lock()
	j := s.jobs[e.Ref]
	passes := j != nil && j.kind.Passes() && !j.ended
	unknown := j != nil && !j.kind.Known()
	s.mu.Unlock()
	if passes {
		s.passBack(j, e)
	}
	if unknown {
		return nil
	}
	var p wire.Pong
	if err := e.Read(&p); err != nil {
		return s.unlessRefused(ctx, e, err)
	}
	switch p.Status {
	case "idle":
		s.self.SetLoad(core.LoadIdle)
	case "busy":
		s.self.SetLoad(core.LoadBusy)
	case "overloaded":
		s.self.SetLoad(core.LoadOverloaded)
	}
	s.mu.Lock()
	s.full = p.Status == "overloaded"
	s.mu.Unlock()
	return nil
}

// passBack forwards an answer to the sender of what passed through the hub. The first one
// that is not progress ends the task.
func (s *session) passBack(j *job, e wire.Envelope) {
	s.report(j, core.ForeignFrame{Dialect: Dialect, Name: string(e.Kind)}, e.Raw)
	if e.Kind == wire.KindProgress {
		return
	}
	s.conclude(j, []core.Body{core.Done{}}, nil)
}

// roomAgain clears the overload that a pong told of, since the peer has ended a task. No
// other pong may ever come.
func (s *session) roomAgain() {
	s.mu.Lock()
	full := s.full
	s.full = false
	s.mu.Unlock()
	if full {
		s.self.SetLoad(core.LoadIdle)
	}
}
