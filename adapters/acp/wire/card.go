package wire

import (
	"encoding/json"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// CardFeatures are the features of every ACP agent: the draft has cancel and notify, which
// also carries context for a running task, and answers have usage and files.
const CardFeatures = core.FeatureCancellation | core.FeatureNotices | core.FeatureInjection | core.FeatureUsage | core.FeatureFiles

// ProgressFeatures are the features of the extension progress.
const ProgressFeatures = core.FeatureStreaming | core.FeatureToolStates

// Card returns the card of an agent with these capabilities. The unknown members of payload,
// from which they were read, become the metadata.
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

// CapabilitiesOf returns a card as capabilities.
func CapabilitiesOf(card core.Card) Capabilities {
	most := int64(max(1, card.MaxConcurrent))
	return Capabilities{
		AgentName: card.Name, Domains: orEmpty(card.Domains), Channels: orEmpty(card.Channels), Tools: orEmpty(card.Tools),
		MaxConcurrentTasks: &most, Model: card.Model, Capabilities: card.Capabilities,
	}
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
