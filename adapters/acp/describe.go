package acp

import (
	"context"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// ping answers for the hub, or for an agent with what the hub knows of it.
func (s *session) ping(ctx context.Context, e Envelope) error {
	agent, err := s.whom(e)
	if err != nil {
		return s.unlessRefused(ctx, e, err)
	}
	if agent == nil {
		return s.answer(ctx, KindPong, e.ID, s.hubPong())
	}
	return s.answer(ctx, KindPong, e.ID, Pong{
		Status: statusOf(agent.Load.State), UptimeSecs: seconds(agent.Since), ActiveTasks: int64(agent.Load.Active), AgentName: agent.Name,
	})
}

// whom returns the agent that an envelope is for, or nil when it is for the hub.
func (s *session) whom(e Envelope) (*hub.AgentStatus, error) {
	to, err := s.address(e.To)
	switch {
	case err != nil:
		return nil, err
	case to.IsZero() || to.Reach() == core.ReachHub:
		return nil, nil
	case to.Agent() == "":
		return nil, refusef(CodeInvalidEnvelope, "a %s is for the hub or one agent, not for %q: leave to out, or send an agent id", e.Kind, e.To)
	}
	agent, ok := s.hub.Reach(to.Agent())
	if !ok {
		return nil, refusef(CodePeerNotFound, "no agent %q is here: send a discover without to for a list", e.To)
	}
	return &agent, nil
}

func (s *session) hubPong() Pong {
	all := s.hub.Totals()
	p := Pong{Status: "idle", UptimeSecs: seconds(s.peers.since), AgentName: s.opts.HubName, ActiveTasks: int64(all.Active)}
	switch {
	case all.Agents > 0 && all.Full == all.Agents:
		p.Status = "overloaded"
	case all.Active > 0:
		p.Status = "busy"
	}
	return p
}

// statusOf says a load in the three words that pong has.
func statusOf(l core.LoadState) string {
	switch l {
	case core.LoadBusy:
		return "busy"
	case core.LoadOverloaded, core.LoadDraining:
		return "overloaded"
	}
	return "idle"
}

func seconds(since time.Time) int64 { return int64(time.Since(since) / time.Second) }

// describe answers a discover: with the card of one agent, or with what everybody
// here can do together.
func (s *session) describe(ctx context.Context, e Envelope) error {
	var d Discover
	if err := e.Read(&d); err != nil {
		return s.unlessRefused(ctx, e, err)
	}
	s.declare(d.Extensions)
	agent, err := s.whom(e)
	if err != nil {
		return s.unlessRefused(ctx, e, err)
	}
	if agent != nil {
		return s.answer(ctx, KindCapabilities, e.ID, capabilitiesOf(agent.Card))
	}
	all := s.everybody()
	out := s.newEnvelope(KindCapabilities, e.ID, all)
	if raw := out.Encode(); len(raw) <= s.opts.MaxEnvelopeBytes {
		return s.out.send(ctx, message{json: raw, kind: out.Kind, ref: e.ID})
	}
	s.hub.Count("acp.capabilities.without_agents")
	all.Agents = nil // the list is an addition of ours; the rest stands without it
	return s.answer(ctx, KindCapabilities, e.ID, all)
}

// everybody is what all agents can do together, and a list of them.
func (s *session) everybody() Capabilities {
	var most int64
	all := Capabilities{
		AgentName: s.opts.HubName, Domains: []string{}, Channels: []string{}, Tools: []string{}, MaxConcurrentTasks: &most,
		Extensions: []string{ExtensionProgress},
	}
	for _, a := range s.hub.Agents() {
		most += int64(max(1, a.MaxConcurrent))
		all.Domains = append(all.Domains, a.Domains...)
		all.Channels = append(all.Channels, a.Channels...)
		all.Tools = append(all.Tools, a.Tools...)
		all.Capabilities = append(all.Capabilities, a.Capabilities...)
		all.Agents = append(all.Agents, Listed{
			ID: a.ID, Hex: hub.Alias(a.ID), AgentName: a.Name, Dialect: a.Dialect, Domains: a.Domains, Capabilities: a.Capabilities,
			Channels: a.Channels, Model: a.Model, Status: statusOf(a.Load.State),
		})
	}
	for _, words := range []*[]string{&all.Domains, &all.Channels, &all.Tools, &all.Capabilities} {
		slices.Sort(*words)
		*words = slices.Compact(*words)
	}
	return all
}

// hello agrees on the version. It is optional here: a peer that never sends one
// speaks version 1.
func (s *session) hello(ctx context.Context, e Envelope) error {
	var h Hello
	if err := e.Read(&h); err != nil {
		return s.unlessRefused(ctx, e, err)
	}
	s.declare(h.Features)
	if e.Ref != "" {
		return nil // a reply; the hub sends no hello
	}
	if !slices.Contains(h.ProtocolVersions, Version) {
		return s.unlessRefused(ctx, e, refusef(CodeIncompatibleVersion, "no version in common: the hub speaks [%d]", Version))
	}
	return s.answer(ctx, KindHello, e.ID, Hello{
		ProtocolVersions: []int64{Version}, SelectedVersion: Version, AgentName: s.opts.HubName, Features: features(),
	})
}

// pong takes what an agent says of its load.
func (s *session) pong(ctx context.Context, e Envelope) error {
	var p Pong
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
	return nil
}

// shutdown tells the peer that the hub is stopping.
func (s *session) shutdown(ctx context.Context, reason string) error {
	e := s.newEnvelope(KindNotify, "", Notify{
		Topic: TopicShutdown, Data: encode(map[string]string{"reason": reason}), Importance: core.ImportanceHigh.String(),
	})
	return s.out.send(ctx, message{json: e.Encode(), kind: KindNotify})
}
