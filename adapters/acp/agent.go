package acp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
)

// cardFeatures are the powers of every ACP agent: the draft has a cancel and a
// notify for all, and answers say what they cost and may hold files. Context for a
// task under way is a notify too.
const cardFeatures = core.FeatureCancellation | core.FeatureNotices | core.FeatureInjection | core.FeatureUsage | core.FeatureFiles

// progressFeatures are the powers that come with the extension.
const progressFeatures = core.FeatureStreaming | core.FeatureToolStates

// discover asks the peer what it can do.
func (s *session) discover(ctx context.Context) error {
	e := s.newEnvelope(KindDiscover, "", Discover{Extensions: extensions()})
	s.mu.Lock()
	s.probe = e.ID
	s.mu.Unlock()
	return s.out.send(ctx, message{json: e.Encode(), kind: KindDiscover})
}

// introduce takes the peer's capabilities: from here on it is an agent. Before, it
// is one for those only who know its id.
func (s *session) introduce(ctx context.Context, e Envelope) error {
	return s.introduceBy(ctx, e, s.join)
}

// introduceBy is introduce with a way to make the peer an agent. A conflict of
// [session.join] begins a contest, which answers the envelope later.
func (s *session) introduceBy(ctx context.Context, e Envelope, join func(context.Context, core.Card) error) error {
	var c Capabilities
	err := e.Read(&c)
	if err == nil {
		err = join(ctx, c.card(s.who.id, e.Payload))
	}
	if errors.Is(err, errContested) {
		s.contend(ctx, e)
		return nil
	}
	if err != nil {
		return s.unlessRefused(ctx, e, err)
	}
	s.declare(c.Extensions)
	load := core.LoadIdle
	if c.MaxConcurrentTasks != nil && *c.MaxConcurrentTasks == 0 {
		load = core.LoadDraining
	}
	s.self.SetLoad(load)
	return nil
}

// declare notes which extensions the peer speaks. What it declared stays.
func (s *session) declare(extensions []string) {
	if slices.Contains(extensions, ExtensionProgress) {
		s.mu.Lock()
		s.progress = true
		s.mu.Unlock()
	}
}

// join makes the peer the agent of the card, or replaces its card. It returns
// errContested when another connection has the id.
func (s *session) join(_ context.Context, card core.Card) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.joined {
		return s.self.Update(card)
	}
	switch err := s.self.Join(card, s.joinOptions()); {
	case err == nil:
		s.joined = true
		return nil
	case core.AsFault(err).Code == core.CodeConflict:
		return errContested
	default:
		return err
	}
}

// card says capabilities in the words of the hub. payload is what they were read
// from: its unknown members become the metadata.
func (c Capabilities) card(id core.AgentID, payload json.RawMessage) core.Card {
	card := core.Card{
		ID: id, Name: c.AgentName, Dialect: Dialect, Capabilities: c.Capabilities, Domains: c.Domains, Model: c.Model,
		Tools: c.Tools, Channels: c.Channels, Features: cardFeatures,
	}
	if c.MaxConcurrentTasks != nil {
		card.MaxConcurrent = int(max(1, min(*c.MaxConcurrentTasks, 1<<20)))
	}
	if slices.Contains(c.Extensions, ExtensionProgress) {
		card.Features |= progressFeatures
	}
	if c.TakesContext != nil && !*c.TakesContext {
		card.Features &^= core.FeatureInjection
	}
	for _, m := range members(payload) {
		switch m.key {
		case "agent_name", "domains", "channels", "tools", "max_concurrent_tasks", "model", "capabilities", "extensions", "takes_context", "agents":
		default:
			if card.Metadata == nil {
				card.Metadata = map[string]json.RawMessage{}
			}
			card.Metadata[m.key] = payload[m.from:m.to]
		}
	}
	return card
}

// capabilitiesOf says a card as capabilities.
func capabilitiesOf(card core.Card) Capabilities {
	most := int64(max(1, card.MaxConcurrent))
	return Capabilities{
		AgentName: card.Name, Domains: orEmpty(card.Domains), Channels: orEmpty(card.Channels), Tools: orEmpty(card.Tools),
		MaxConcurrentTasks: &most, Model: card.Model, Capabilities: card.Capabilities,
	}
}

func orEmpty(words []string) []string {
	if words == nil {
		return []string{}
	}
	return words
}
