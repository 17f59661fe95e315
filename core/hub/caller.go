package hub

import "github.com/dragoman-hub/dragoman/core"

// Caller is a principal with the rights that its credential gives, as hubs pass it to each other.
type Caller struct {
	core.Principal
	Kind   core.PrincipalKind `json:"kind,omitzero"`
	Roles  []string           `json:"roles,omitempty"`
	Agents []string           `json:"agents,omitempty"`
	Packs  []string           `json:"packs,omitempty"`
}

// CallerOf returns what is passed of a principal.
func CallerOf(p core.Principal) Caller {
	c := Caller{Principal: p}
	if own := p.Credential; own != nil {
		c.Kind, c.Roles, c.Agents, c.Packs = own.Kind, own.Roles, own.Agents, own.Packs
	}
	return c
}

// Known returns the principal, with its rights.
func (c Caller) Known() core.Principal {
	p := c.Principal
	if c.Kind != 0 || len(c.Roles)+len(c.Agents)+len(c.Packs) > 0 {
		p.Credential = &core.Credential{Kind: c.Kind, Roles: c.Roles, Agents: c.Agents, Packs: c.Packs}
	}
	return p
}
