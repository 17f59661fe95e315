package parallax

import (
	"cmp"
	"context"
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
)

// register makes the connection an agent of the hub, or changes its card when it
// is one already.
func (s *session) register(ctx context.Context, m wire.Message, p wire.Register) error {
	if s.agent != nil {
		return s.registerAgain(ctx, m, p)
	}
	id, err := s.chooseID(p)
	if err != nil {
		return s.refuse(ctx, m.ID, wire.CodeInvalidMessage, core.AsFault(err).Message)
	}
	if err := s.trusted(ctx, m, id); err != nil {
		return err
	}
	extensions := declared(p)
	card := s.cardOf(id, p, extensions)
	principal := s.opts.Principal
	if principal.ID == "" {
		principal.ID = string(id)
	}
	principal.Dialect = Dialect
	agent := s.hub.Connect(hub.Identity{Principal: principal, Dialect: Dialect, Deadline: s.opts.TaskTimeout, Keep: s.opts.KeepTasks, Checked: true})
	s.most = min(wire.Milliseconds(p.Config.TaskTimeout), wire.MaxTaskTimeout)
	err = agent.Join(card, s.joinOptions())
	conflict := err != nil && core.AsFault(err).Code == core.CodeConflict
	if err != nil && !conflict {
		agent.Close(core.AsFault(err))
		if core.AsFault(err).Code == core.CodeUnreachable {
			return s.comesTooLate(ctx, err)
		}
		return s.refuse(ctx, m.ID, wire.CodeInvalidMessage, core.AsFault(err).Message)
	}
	s.agent, s.id = agent, id
	s.extensions = extensions
	s.declared = p.Config.Heartbeat()
	s.mu.Lock()
	s.card = card
	s.mu.Unlock()
	if conflict {
		s.claims <- claim{register: m.ID, card: card}
		return nil
	}
	return s.welcome(ctx, m.ID, card)
}

// joinOptions say how the hub is to treat an agent of this dialect.
func (s *session) joinOptions() hub.JoinOptions {
	if s.gate != nil {
		return hub.JoinOptions{NoticeTasks: true, Probe: s.probe}
	}
	return hub.JoinOptions{NoticeTasks: true, Probe: s.link.Ping, MostTime: s.most}
}

// welcome tells the agent that it is registered.
func (s *session) welcome(ctx context.Context, id string, card core.Card) error {
	s.imposed.Store(int64(s.agent.AgentSettings().Heartbeat))
	s.told.Store(int64(s.interval()))
	if err := s.reply(ctx, wire.TypeRegistered, id, s.registered(card)); err != nil {
		return err
	}
	close(s.joined)
	return nil
}

// claim is a register for an id that another connection has.
type claim struct {
	register string // the id of the message
	card     core.Card
}

// settle finds out which of two connections has the id. That may take a while, so the
// pump does it, not the reader.
func (s *session) settle(ctx context.Context, c claim) error {
	switch err := s.agent.Take(ctx, c.card, s.joinOptions()); {
	case err == nil:
		return s.welcome(ctx, c.register, c.card)
	case core.AsFault(err).Code == core.CodeConflict:
		return s.fail(ctx, c.register, wire.CodeDuplicateName, core.AsFault(err).Message, link.Reason{Cause: link.Unauthorized, Code: closeDuplicate})
	default:
		return s.farewell(ctx, err)
	}
}

// comesTooLate tells an agent that the hub is stopping, as those are told that it has.
func (s *session) comesTooLate(ctx context.Context, err error) error {
	if err := s.send(ctx, wire.TypeDisconnect, wire.Disconnect{Reason: core.AsFault(err).Message, Graceful: true}); err != nil {
		return err
	}
	return s.farewell(ctx, err)
}

// isAgent reports whether the hub has taken the agent in.
func (s *session) isAgent() bool {
	select {
	case <-s.joined:
		return true
	default:
		return false
	}
}

// registerAgain takes a second register as a new card: a peer that is unsure
// whether the first arrived may repeat it. The extensions stay as they were, and how long
// a task may take.
func (s *session) registerAgain(ctx context.Context, m wire.Message, p wire.Register) error {
	if p.AgentID != "" && p.AgentID != string(s.id) {
		return s.refuse(ctx, m.ID, wire.CodeInvalidMessage, "payload.agentId: this connection is agent "+string(s.id)+": connect again to be another")
	}
	s.mu.Lock()
	card := s.cardOf(s.id, p, s.extensions)
	s.card = card
	s.mu.Unlock()
	if err := s.agent.Update(card); err != nil {
		return s.refuse(ctx, m.ID, wire.CodeInvalidMessage, core.AsFault(err).Message)
	}
	return s.reply(ctx, wire.TypeRegistered, m.ID, s.registered(card))
}

// chooseID settles who the agent is: X-Agent-Id, else the payload, else who it
// authenticated as, else an id made for it. Header and payload may not differ:
// what is routed by comes from one place.
func (s *session) chooseID(p wire.Register) (core.AgentID, error) {
	header, own := s.opts.AgentID, p.AgentID
	switch {
	case header != "" && own != "" && header != own:
		return "", core.NewFault(core.CodeInvalid, "payload.agentId is %q and the header X-Agent-Id was %q: send the same, or one of them", wire.Shorten(own), wire.Shorten(header))
	case header != "":
		return core.AgentID(header), nil
	case own != "":
		return core.AgentID(own), nil
	case s.gate != nil:
		return "", core.NewFault(core.CodeInvalid, "Missing agent_id in hello") // as agents know it
	case s.opts.Principal.Authenticated:
		return core.AgentID(s.opts.Principal.ID), nil
	}
	return core.AgentID("agent_" + core.NewID()), nil
}

// cardOf is what a register says of the agent. Its capabilities outrank those of
// the header, which stand in where it has none.
func (s *session) cardOf(id core.AgentID, p wire.Register, extensions map[string]bool) core.Card {
	card := core.Card{
		ID: id, Name: string(id), Dialect: Dialect, Capabilities: p.Capabilities, Domains: p.Domains,
		MaxConcurrent: int(max(0, min(p.Config.MaxConcurrentTasks, 1<<20))), Metadata: p.Metadata,
	}
	if len(card.Capabilities) == 0 {
		card.Capabilities = s.opts.Capabilities
	}
	if name, ok := wire.Unquoted(p.Metadata["name"]); ok && name != "" {
		card.Name = name
	}
	card.Model, _ = wire.Unquoted(p.Metadata["model"])
	card.Features = features(extensions, card.Capabilities)
	return card
}

// features are the powers of an agent. Every one can be cancelled and sends and
// takes files; it streams if it declared so, and takes notices if it wants them.
func features(extensions map[string]bool, capabilities []string) core.Features {
	f := core.FeatureCancellation | core.FeatureFiles | core.FeatureUsage
	if extensions[wire.ExtensionProgress] {
		f |= core.FeatureStreaming | core.FeatureToolStates
	}
	if slices.Contains(capabilities, wire.CapabilityNotify) {
		f |= core.FeatureNotices
	}
	return f
}

// declared are the extensions that both sides know.
func declared(p wire.Register) map[string]bool {
	both := map[string]bool{}
	for _, name := range p.Config.Extensions {
		switch name {
		case wire.ExtensionAccepted, wire.ExtensionProgress, wire.ExtensionRequest:
			both[name] = true
		}
	}
	return both
}

func (s *session) registered(card core.Card) wire.Registered {
	timeout := wire.MillisecondsOf(cmp.Or(s.most, s.opts.TaskTimeout))
	running := 1
	if now, here := s.hub.Agent(card.ID); here {
		running = now.MaxConcurrent // an operator may have set it
	}
	r := wire.Registered{
		AgentID: string(card.ID), ConnectionID: s.opts.ConnectionID, Capabilities: card.Capabilities,
		Config: wire.RegisteredConfig{
			HeartbeatInterval: wire.MillisecondsOf(s.interval()), TaskTimeout: timeout, MaxConcurrentTasks: wire.Count(running),
		},
	}
	if r.Capabilities == nil {
		r.Capabilities = []string{}
	}
	for _, name := range []string{wire.ExtensionAccepted, wire.ExtensionProgress, wire.ExtensionRequest} {
		if s.extensions[name] {
			r.Config.Extensions = append(r.Config.Extensions, name)
		}
	}
	return r
}
