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

// register makes the connection an agent of the hub, or changes the card of one.
func (s *session) register(ctx context.Context, m wire.Message, p wire.Register) error {
	if s.agent != nil {
		return s.registerAgain(ctx, m, p)
	}
	id, err := s.chooseID(p)
	if err != nil {
		return s.refuse(ctx, m.ID, wire.CodeInvalidMessage, core.AsFault(err).Message)
	}
	if err := s.authenticate(ctx, m, id); err != nil {
		return err
	}
	extensions := knownExtensions(p)
	card := s.cardOf(id, p, extensions)
	principal := s.opts.Principal
	principal.ID = cmp.Or(principal.ID, string(id))
	principal.Dialect = Dialect
	agent := s.hub.Connect(hub.Identity{Principal: principal, Dialect: Dialect, Deadline: s.opts.TaskTimeout, FixedDeadline: true, Keep: s.opts.KeepTasks, Checked: true, Frames: s.opts.Link.Frames, Trace: s.opts.Trace})
	s.maxTaskTime = min(wire.Milliseconds(p.Config.TaskTimeout), wire.MaxTaskTimeout)
	err = agent.Join(card, s.joinOptions())
	conflict := err != nil && core.AsFault(err).Code == core.CodeConflict
	if err != nil && !conflict {
		f := core.AsFault(err)
		agent.Close(f)
		switch {
		case agent.Rejected() != nil: // another register would fare no better
			return s.fail(ctx, m.ID, wire.CodeOf(f), f.Message, link.Reason{Cause: link.Overloaded})
		case f.Code == core.CodeUnreachable:
			return s.refuseStopping(ctx, f)
		}
		return s.refuse(ctx, m.ID, wire.CodeInvalidMessage, f.Message)
	}
	s.registerTimer.Stop()
	s.agent, s.id, s.extensions, s.interval = agent, id, extensions, p.Config.Heartbeat()
	s.mu.Lock()
	s.card = card
	s.mu.Unlock()
	if conflict {
		s.startResolving(claim{register: m.ID, card: card})
		return nil
	}
	return s.welcome(ctx, m.ID, card)
}

// joinOptions returns how the hub treats an agent of this dialect.
func (s *session) joinOptions() hub.JoinOptions {
	if s.gateway != nil {
		return hub.JoinOptions{NoticeTasks: true, Heartbeats: true, Probe: s.probe}
	}
	return hub.JoinOptions{NoticeTasks: true, Heartbeats: true, Probe: s.link.Ping, MaxTaskTime: s.maxTaskTime}
}

// welcome confirms the registration.
func (s *session) welcome(ctx context.Context, id string, card core.Card) error {
	s.operatorInterval.Store(int64(s.agent.AgentSettings().Heartbeat))
	s.registeredInterval.Store(int64(s.heartbeatInterval()))
	s.joined.Store(true) // before the agent hears of it and goes on
	if err := s.send(ctx, wire.TypeRegistered, id, s.registered(card)); err != nil {
		return err
	}
	s.startDelivery()
	return nil
}

// claim is a register for the id of another connection.
type claim struct {
	register string // the id of the message
	card     core.Card
}

// resolve decides which of two connections gets the id. It may wait for the answer to a ping.
func (s *session) resolve(ctx context.Context, c claim) error {
	switch err := s.agent.Take(ctx, c.card, s.joinOptions()); {
	case err == nil:
		return s.welcome(ctx, c.register, c.card)
	case core.AsFault(err).Code == core.CodeConflict:
		return s.fail(ctx, c.register, wire.CodeDuplicateName, core.AsFault(err).Message, link.Reason{Cause: link.Unauthorized, Code: closeDuplicate})
	default:
		return s.hubEnded(ctx, err)
	}
}

// refuseStopping refuses an agent because the hub is stopping, with the messages that
// registered agents get then.
func (s *session) refuseStopping(ctx context.Context, f *core.Fault) error {
	if err := s.send(ctx, wire.TypeDisconnect, "", wire.Disconnect{Reason: f.Message, Graceful: true}); err != nil {
		return err
	}
	return s.hubEnded(ctx, f)
}

// isRegistered reports whether the hub has accepted the agent.
func (s *session) isRegistered() bool { return s.joined.Load() }

// registerAgain replaces the card: a peer may repeat a register that it believes lost.
// The id, the extensions and the task timeout do not change.
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
	return s.send(ctx, wire.TypeRegistered, m.ID, s.registered(card))
}

// chooseID returns X-Agent-Id, else agentId of the payload, else the id of the
// authenticated principal, else a new one. Header and payload may not differ.
func (s *session) chooseID(p wire.Register) (core.AgentID, error) {
	header, own := s.opts.AgentID, p.AgentID
	switch {
	case header != "" && own != "" && header != own:
		return "", core.NewFault(core.CodeInvalid, "payload.agentId is %q and the header X-Agent-Id was %q: send the same, or one of them", wire.Shorten(own), wire.Shorten(header))
	case header != "" || own != "":
		return core.AgentID(cmp.Or(header, own)), nil
	case s.gateway != nil:
		return "", core.NewFault(core.CodeInvalid, "Missing agent_id in hello") // the text of Parallax
	case s.opts.Principal.Authenticated:
		return core.AgentID(s.opts.Principal.ID), nil
	}
	return core.AgentID("agent_" + core.NewID()), nil
}

// cardOf returns the card of a register. Without capabilities those of the header count.
func (s *session) cardOf(id core.AgentID, p wire.Register, extensions map[string]bool) core.Card {
	card := core.Card{
		ID: id, Name: string(id), Dialect: Dialect, Capabilities: p.Capabilities, Domains: p.Domains,
		MaxConcurrent: int(max(0, min(p.Config.MaxConcurrentTasks, 1<<20))), Metadata: p.Metadata,
	}
	if len(card.Capabilities) == 0 {
		card.Capabilities = s.opts.Capabilities
	}
	if name, _ := wire.Unquoted(p.Metadata["name"]); name != "" {
		card.Name = name
	}
	card.Model, _ = wire.Unquoted(p.Metadata["model"])
	card.Features = features(extensions, card.Capabilities)
	return card
}

// features returns the features of an agent. Each can be cancelled, and sends and takes
// files.
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

// extensions are those that the hub knows.
var extensions = []string{wire.ExtensionAccepted, wire.ExtensionProgress, wire.ExtensionRequest, wire.ExtensionTrace}

// knownExtensions returns the extensions that both sides know.
func knownExtensions(p wire.Register) map[string]bool {
	both := map[string]bool{}
	for _, name := range p.Config.Extensions {
		if slices.Contains(extensions, name) {
			both[name] = true
		}
	}
	return both
}

func (s *session) registered(card core.Card) wire.Registered {
	running := 1
	if now, here := s.hub.Agent(s.opts.Principal, card.ID); here {
		running = now.MaxConcurrent // an operator may have set it
	}
	r := wire.Registered{
		AgentID: string(card.ID), ConnectionID: s.opts.ConnectionID, Capabilities: card.Capabilities,
		Config: wire.RegisteredConfig{
			HeartbeatInterval: wire.MillisecondsOf(s.heartbeatInterval()), TaskTimeout: wire.MillisecondsOf(cmp.Or(s.maxTaskTime, s.opts.TaskTimeout)),
			MaxConcurrentTasks: wire.Count(running),
		},
	}
	if r.Capabilities == nil {
		r.Capabilities = []string{}
	}
	for _, name := range extensions {
		if s.extensions[name] {
			r.Config.Extensions = append(r.Config.Extensions, name)
		}
	}
	return r
}
