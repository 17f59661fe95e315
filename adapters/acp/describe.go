package acp

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/roster"
)

// recipient returns the agent that an envelope is for, or nil when it is for the hub.
func (s *session) recipient(e wire.Envelope) (*hub.AgentStatus, error) {
	to, err := s.address(e.To)
	switch {
	case err != nil:
		return nil, err
	case to.IsZero() || to.Reach() == core.ReachHub:
		return nil, nil
	case to.Agent() == "":
		return nil, wire.Refusef(wire.CodeInvalidEnvelope, "a %s is for the hub or one agent, not for %q: leave to out, or send an agent id", e.Kind, e.To)
	}
	agent, ok := s.hub.Reach(s.principal, to.Agent())
	if !ok {
		return nil, wire.Refusef(wire.CodePeerNotFound, "no agent %q is here: send a discover without to for a list", e.To)
	}
	return &agent, nil
}

func (s *session) hubPong() wire.Pong {
	all := s.hub.Totals(s.principal)
	p := wire.Pong{Status: "idle", UptimeSecs: seconds(s.peers.since), AgentName: s.opts.HubName, ActiveTasks: int64(all.Active)}
	switch {
	case all.Agents > 0 && all.Full == all.Agents:
		p.Status = "overloaded"
	case all.Active > 0:
		p.Status = "busy"
	}
	return p
}

func seconds(since time.Time) int64 { return int64(time.Since(since) / time.Second) }

// describe answers a discover: with the capabilities of one agent, or of all together.
func (s *session) describe(ctx context.Context, e wire.Envelope) error {
	var d wire.Discover
	if err := e.Read(&d); err != nil {
		return s.refuseIf(ctx, e, err)
	}
	s.noteExtensions(d.Extensions)
	agent, err := s.recipient(e)
	if err != nil {
		return s.refuseIf(ctx, e, err)
	}
	if agent != nil {
		out := s.newEnvelope(wire.KindCapabilities, e.ID, nil)
		for _, own := range []bool{true, false} {
			out.Payload = capabilitiesOf(agent, own)
			if len(out.Encode()) <= s.opts.MaxEnvelopeBytes {
				break
			}
		}
		return s.send(ctx, out)
	}
	all, err := s.allCapabilities(d.Domain)
	if err != nil {
		return s.refuseIf(ctx, e, err)
	}
	out := s.newEnvelope(wire.KindCapabilities, e.ID, all)
	if len(out.Encode()) > s.opts.MaxEnvelopeBytes {
		out = s.someAgents(e, all)
	}
	if size := len(out.Encode()); size > s.opts.MaxEnvelopeBytes {
		return s.refuseIf(ctx, e, wire.Refusef(wire.CodeTooLarge, "what the agents here can do has %d bytes, an envelope at most %d: send a discover with a domain", size, s.opts.MaxEnvelopeBytes))
	}
	return s.send(ctx, out)
}

// someAgents returns the capabilities with as many agents as fit, by id, and the number of
// the others.
func (s *session) someAgents(e wire.Envelope, all wire.Capabilities) wire.Envelope {
	s.hub.Count("acp.capabilities.fewer_agents")
	list := all.Agents
	all.Agents, all.MoreAgents = []wire.Listed{}, len(list)
	room := s.opts.MaxEnvelopeBytes - len(s.newEnvelope(wire.KindCapabilities, e.ID, all).Encode()) - len(`"agents":[],`)
	n := 0
	for n < len(list) {
		if room -= len(wire.Marshal(list[n])) + len(","); room < 0 {
			break
		}
		n++
	}
	all.Agents, all.MoreAgents = list[:n], len(list)-n
	return s.newEnvelope(wire.KindCapabilities, e.ID, all)
}

// capabilitiesOf returns the capabilities of one agent; with own including the members of
// an ACP agent's own that the hub does not know (promise P11).
func capabilitiesOf(agent *hub.AgentStatus, own bool) json.RawMessage {
	c := wire.CapabilitiesOf(agent.Card)
	if agent.Load.State == core.LoadDraining {
		*c.MaxConcurrentTasks = 0
	}
	if agent.Dialect != Dialect {
		return wire.Marshal(c)
	}
	if agent.Features.Has(wire.ProgressFeatures) {
		c.Extensions = []string{wire.ExtensionProgress}
	}
	var members []wire.Field
	for _, key := range slices.Sorted(maps.Keys(agent.Metadata)) {
		if own {
			members = append(members, wire.Field{Key: key, Value: agent.Metadata[key]})
		}
	}
	return wire.SetMembers(wire.Marshal(c), members...)
}

// allCapabilities returns the capabilities of all agents together, and a list of the
// agents. With a domain it has only the agents of that domain and its subdomains.
func (s *session) allCapabilities(domain string) (wire.Capabilities, error) {
	var most int64
	var of core.Address
	if domain != "" {
		var err error
		if of, err = core.ParseAddress("domain:" + domain); err != nil {
			return wire.Capabilities{}, err
		}
	}
	all := wire.Capabilities{
		AgentName: s.opts.HubName, Domains: []string{}, Channels: []string{}, Tools: []string{}, MaxConcurrentTasks: &most,
		Extensions: wire.Extensions(),
	}
	for _, a := range s.hub.Agents(s.principal) {
		if domain != "" && !concerns(a.Card, of) {
			continue
		}
		most += int64(max(1, a.MaxConcurrent))
		all.Domains = append(all.Domains, a.Domains...)
		all.Channels = append(all.Channels, a.Channels...)
		all.Tools = append(all.Tools, a.Tools...)
		all.Capabilities = append(all.Capabilities, a.Capabilities...)
		all.Agents = append(all.Agents, wire.Listed{
			ID: a.ID, Hex: roster.Alias(a.ID), AgentName: a.Name, Dialect: a.Dialect, Domains: a.Domains, Capabilities: a.Capabilities,
			Channels: a.Channels, Model: a.Model, Status: statusOf(a.Load.State),
		})
	}
	for _, list := range []*[]string{&all.Domains, &all.Channels, &all.Tools, &all.Capabilities} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return all, nil
}

// concerns reports whether an agent answers for a domain or one of its subdomains.
func concerns(card core.Card, domain core.Address) bool {
	_, answers := card.Answers(domain)
	return answers || slices.ContainsFunc(card.Domains, func(d string) bool { return strings.HasPrefix(d, domain.Domain()+".") })
}

// hello agrees on the version. It is optional: a peer that sends none speaks version 1.
func (s *session) hello(ctx context.Context, e wire.Envelope) error {
	var h wire.Hello
	if err := e.Read(&h); err != nil {
		return s.refuseIf(ctx, e, err)
	}
	s.noteExtensions(h.Features)
	if e.Ref != "" {
		return nil // a reply; the hub sends no hello
	}
	if !slices.Contains(h.ProtocolVersions, wire.Version) {
		return s.refuseIf(ctx, e, wire.Refusef(wire.CodeIncompatibleVersion, "no version in common: the hub speaks [%d]", wire.Version))
	}
	return s.answer(ctx, wire.KindHello, e.ID, wire.Hello{
		ProtocolVersions: []int64{wire.Version}, SelectedVersion: wire.Version, AgentName: s.opts.HubName, Features: wire.Features(),
	})
}

// shutdown tells the peer that the hub is stopping.
func (s *session) shutdown(ctx context.Context, reason string) error {
	return s.notice(ctx, wire.TopicShutdown, map[string]string{"reason": reason})
}

// notice sends a notice of the hub itself.
func (s *session) notice(ctx context.Context, topic string, data any) error {
	return s.answer(ctx, wire.KindNotify, "", wire.Notify{Topic: topic, Data: wire.Marshal(data), Importance: core.ImportanceHigh.String()})
}
