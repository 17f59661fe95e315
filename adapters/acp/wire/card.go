package wire

import (
	"encoding/json"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// CardFeatures are the powers of every ACP agent: the draft has a cancel and a
// notify for all, and answers say what they cost and may hold files. Context for a
// task under way is a notify too.
const CardFeatures = core.FeatureCancellation | core.FeatureNotices | core.FeatureInjection | core.FeatureUsage | core.FeatureFiles

// ProgressFeatures are the powers that come with the extension.
const ProgressFeatures = core.FeatureStreaming | core.FeatureToolStates

// Card returns the card of an agent with these capabilities. payload is what they were
// read from, or no value: its unknown members become the metadata.
func (c Capabilities) Card(id core.AgentID, payload strictjson.Value) core.Card {
	card := core.Card{
		ID: id, Name: c.AgentName, Dialect: Dialect, Capabilities: c.Capabilities, Domains: c.Domains, Model: c.Model,
		Tools: c.Tools, Channels: c.Channels, Features: CardFeatures,
	}
	if c.MaxConcurrentTasks != nil {
		card.MaxConcurrent = int(max(1, min(*c.MaxConcurrentTasks, 1<<20)))
	}
	if slices.Contains(c.Extensions, ExtensionProgress) {
		card.Features |= ProgressFeatures
	}
	if c.TakesContext != nil && !*c.TakesContext {
		card.Features &^= core.FeatureInjection
	}
	for key, value := range payload.Members() {
		switch string(key) {
		case "agent_name", "domains", "channels", "tools", "max_concurrent_tasks", "model", "capabilities", "extensions", "takes_context", "agents":
		default:
			if card.Metadata == nil {
				card.Metadata = map[string]json.RawMessage{}
			}
			card.Metadata[string(key)] = value.Clone()
		}
	}
	return card
}

// CapabilitiesOf returns the capabilities that a card stands for.
func CapabilitiesOf(card core.Card) Capabilities {
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
