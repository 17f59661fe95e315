package wire

import (
	"cmp"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
)

// Supervise returns the card of an agent that somebody else runs, by settings: what those say
// comes first, and what the agent says of itself in join is added.
func Supervise(settings, said core.Card) core.Card {
	card := said
	card.ID = settings.ID
	card.Name = cmp.Or(settings.Name, said.Name)
	card.Model = cmp.Or(settings.Model, said.Model)
	if settings.MaxConcurrent > 0 {
		card.MaxConcurrent = settings.MaxConcurrent
	}
	card.Capabilities = union(settings.Capabilities, said.Capabilities)
	card.Domains = union(settings.Domains, said.Domains)
	card.Tools = union(settings.Tools, said.Tools)
	card.Channels = union(settings.Channels, said.Channels)
	card.Features |= settings.Features
	return card
}

func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}
