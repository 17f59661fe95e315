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

// ping is for the hub, which answers, or for an agent: an ACP agent gets it, for any
// other the hub answers with what it knows. That it does, too, for the peer itself and
// for one that never said it is an agent, which a ping does not make it.
func (s *session) ping(ctx context.Context, e wire.Envelope) error {
	agent, err := s.whom(e)
	switch {
	case err != nil:
		return s.unlessRefused(ctx, e, err)
	case agent == nil:
		return s.answer(ctx, wire.KindPong, e.ID, s.hubPong())
	}
	if _, listed := s.hub.Agent(agent.ID); listed && agent.Dialect == Dialect && agent.ID != s.who.id {
		return s.unlessRefused(ctx, e, s.knock(e, agent))
	}
	return s.answer(ctx, wire.KindPong, e.ID, wire.Pong{
		Status: statusOf(agent.Load.State), UptimeSecs: seconds(agent.Since), ActiveTasks: int64(agent.Load.Active), AgentName: agent.Name,
	})
}

// knock passes a ping on to an ACP agent. Its pong comes back as it is.
func (s *session) knock(e wire.Envelope, agent *hub.AgentStatus) error {
	req := core.Request{
		Intent: core.IntentNotify, To: core.ToAgent(agent.ID), Deadline: time.Now().Add(pingTimeout), Notice: passing(e),
	}
	return s.open(e, req, &asked{id: e.ID, kind: wire.KindPing, reports: true}, false)
}

// passing is how the hub regards an envelope that passes through it.
func passing(e wire.Envelope) *core.Notice {
	return &core.Notice{Topic: "acp." + string(e.Kind), Data: e.Payload}
}

// pong takes what an agent says of its load, and gives it to who knocked. One that
// answers a kind that the hub does not know says nothing to the hub.
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

// passBack gives the first answer to what passed through the hub to who sent that, and
// what comes by progress before it.
func (s *session) passBack(j *job, e wire.Envelope) {
	s.report(j, core.ForeignFrame{Dialect: Dialect, Name: string(e.Kind)}, e.Raw)
	if e.Kind == wire.KindProgress {
		return
	}
	s.conclude(j, []core.Body{core.Done{}}, nil)
}

// roomAgain takes back that the peer is overloaded, since it has ended a task: a pong
// tells of one moment, and nobody may ever ask for another.
func (s *session) roomAgain() {
	s.mu.Lock()
	full := s.full
	s.full = false
	s.mu.Unlock()
	if full {
		s.self.SetLoad(core.LoadIdle)
	}
}
