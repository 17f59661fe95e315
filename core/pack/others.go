package pack

import (
	"maps"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// A cluster has a Registry at each hub. Each offers the packs of all: those of another hub through a
// [Peer] that passes their calls on. Of packs that collide the one that came first stays, at every
// hub.

// Word is what the Registry of one hub tells that of another, in its stable JSON form. One of its
// members is set.
type Word struct {
	// Offered is a pack of the hub, or what it offers now.
	Offered *Offered `json:"offered,omitempty"`
	// Left is a pack of the hub that is gone.
	Left *Left `json:"left,omitempty"`
	// All asks for all packs.
	All bool `json:"all,omitempty"`
}

// Offered is a pack of a hub.
type Offered struct {
	// Since says when the pack came: of two the one with the smaller came first.
	Since    string            `json:"since"`
	Pack     string            `json:"pack"`
	Provider Provider          `json:"provider"`
	Tools    []tool.Definition `json:"tools"`
}

// Left is a pack that is gone, by its Since, and why.
type Left struct {
	Since  string      `json:"since"`
	Reason *core.Fault `json:"reason"`
}

// Provider is who provides a pack.
type Provider struct {
	Principal core.Principal `json:"principal"`
	Dialect   string         `json:"dialect"`
	// Hub is the name of the hub that it is connected to; "" for this one.
	Hub string `json:"-"`
}

// HubUp makes another hub one that offers the packs of this one. It is told of them when it asks.
func (r *Registry) HubUp(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hubs[name] = struct{}{}
	r.opts.Tell(name, Word{All: true})
}

// HubGone removes the packs of another hub. Their calls are answered as unreachable.
func (r *Registry) HubGone(name string, reason *core.Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.hubs, name)
	for _, p := range r.packs {
		if p.hub == name {
			r.leave(p, reason)
		}
	}
}

// tell tells all other hubs. Callers hold mu.
func (r *Registry) tell(w Word) {
	for _, name := range slices.Sorted(maps.Keys(r.hubs)) {
		r.opts.Tell(name, w)
	}
}

// Hear takes what the Registry of another hub says. It returns the peers of this hub whose packs
// came after one of that hub and collide with it: they offer nothing any more, and the caller tells
// them why.
func (r *Registry) Hear(from string, w Word) (refused map[Peer]*core.Fault) {
	if w.Offered != nil {
		return r.hearOffered(from, *w.Offered)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case w.Left != nil && w.Left.Reason != nil:
		if p := r.known(from, w.Left.Since); p != nil {
			r.leave(p, w.Left.Reason)
		}
	case w.All:
		for _, p := range r.packs {
			if p.hub == "" {
				r.opts.Tell(from, Word{Offered: r.offered(p)})
			}
		}
	}
	return nil
}

// known returns the pack of another hub; nil for none. Callers hold mu.
func (r *Registry) known(hub, since string) *pack {
	for _, p := range r.packs {
		if p.hub == hub && p.since == since {
			return p
		}
	}
	return nil
}

// offered returns what others are told of a pack. Callers hold mu.
func (r *Registry) offered(p *pack) *Offered {
	o := &Offered{Since: p.since, Pack: p.id, Provider: p.peer.Provider()}
	for _, t := range r.tools {
		if t.pack == p {
			o.Tools = append(o.Tools, t.Definition)
		}
	}
	slices.SortFunc(o.Tools, func(a, b tool.Definition) int { return strings.Compare(a.Name, b.Name) })
	return o
}

// hearOffered offers the tools of a pack of another hub, unless one that it collides with came first.
func (r *Registry) hearOffered(from string, o Offered) (refused map[Peer]*core.Fault) {
	o.Provider.Hub = from
	read, size, err := r.read(o.Pack, o.Tools)
	r.mu.Lock()
	defer r.mu.Unlock()
	current := r.known(from, o.Since)
	if r.stopped != nil {
		return nil
	}
	if err != nil { // such as those of another version
		r.opts.Count("pack.unusable")
		if current != nil {
			r.leave(current, core.NewFault(core.CodeUnreachable, "its tools cannot be used here: %s", core.AsFault(err).Message))
		}
		return nil
	}
	rivals := r.rivals(current, o.Pack, read)
	if slices.ContainsFunc(rivals, func(p *pack) bool { return p.since < o.Since }) {
		return nil // that hub hears of the other, too
	}
	for _, p := range rivals {
		reason := core.NewFault(core.CodeConflict, "pack %s of hub %s came first: it has the same id or tools of the same names", o.Pack, from)
		if p.hub == "" {
			if refused == nil {
				refused = map[Peer]*core.Fault{}
			}
			refused[p.peer] = reason
		}
		r.leave(p, reason)
	}
	if current == nil {
		current = &pack{id: o.Pack, peer: r.opts.Elsewhere(o.Provider), hub: from, since: o.Since}
		r.packs[current.peer] = current
	}
	r.put(current, read, size)
	return refused
}

// rivals returns the packs other than own that have the id, or a tool of the same name. Callers hold
// mu.
func (r *Registry) rivals(own *pack, id string, tools []*provided) (all []*pack) {
	for _, p := range r.packs {
		if p != own && (p.id == id || slices.ContainsFunc(tools, func(t *provided) bool { by := r.tools[t.Name]; return by != nil && by.pack == p })) {
			all = append(all, p)
		}
	}
	return all
}
