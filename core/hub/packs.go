package hub

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// packs are the packs that are connected, by the sessions that provide them, and
// what is asked of them. Its mu is locked last, but for those of inboxes.
type packs struct {
	limits Limits
	schema func([]byte) (func([]byte) error, error)
	count  func(string)

	mu       sync.Mutex
	connects map[*Session]*pack
	tools    map[string]*packTool
	calls    map[string]*packCall // by the id of their execution
	watchers map[*Session]struct{}
	stopped  *core.Fault
	late     lateCalls
}

// pack is what one session provides.
type pack struct {
	id      string
	session *Session
	tools   []*packTool
	size    int // of the definitions
	// calls and bytes are of what it has been asked and not answered, or not been
	// told yet.
	calls, bytes int
}

// packTool is a tool of a pack, with what holds an input against its schema.
type packTool struct {
	tool.Definition
	pack  *pack
	check func([]byte) error // nil takes any input
}

func newPacks(l Limits, schema func([]byte) (func([]byte) error, error), count func(string)) packs {
	return packs{
		limits: l, schema: schema, count: count,
		connects: map[*Session]*pack{}, tools: map[string]*packTool{}, calls: map[string]*packCall{}, watchers: map[*Session]struct{}{},
	}
}

// Provide offers the tools of a pack through the session, from now until it closes,
// in place of those that it provided before. It returns a conflict Fault when the
// pack is connected elsewhere, when the session provides another, or when a tool's
// name is taken; an invalid Fault for a name or a schema that cannot be one; a
// too_large or overloaded Fault beyond the limits. Then nothing has changed.
func (s *Session) Provide(id string, tools []tool.Definition) error {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	return s.doing(core.Provide{Pack: id, Tools: names}, func() error { return s.provide(id, tools) })
}

func (s *Session) provide(id string, tools []tool.Definition) error {
	h := s.hub
	p, err := h.packs.read(id, tools)
	if err != nil {
		return err
	}
	p.session = s
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case s.closed:
		return core.NewFault(core.CodeUnreachable, "the connection has ended")
	case h.draining != "":
		return core.NewFault(core.CodeUnreachable, "the hub is stopping (%s): come again once it is back", h.draining)
	}
	if err := h.packs.admit(p); err != nil {
		return err
	}
	h.log.Info("pack provides tools", "pack", id, "dialect", s.identity.Dialect, "tools", len(tools))
	return nil
}

// allBytes bounds the definitions of all tools together: every agent is told of
// them in one message.
const allBytes = 2 << 20

// admit takes a pack in, or what it now is.
func (ps *packs) admit(p *pack) error {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	old, size := ps.connects[p.session], p.size
	if old != nil && old.id != p.id {
		return core.NewFault(core.CodeConflict, "this connection provides pack %s: open another for pack %s", old.id, p.id)
	}
	for _, other := range ps.connects {
		if other == old {
			continue
		}
		if other.id == p.id {
			return core.NewFault(core.CodeConflict, "pack %s already registered", p.id)
		}
		size += other.size
	}
	if old == nil && len(ps.connects) >= ps.limits.Packs {
		return core.NewFault(core.CodeOverloaded, "%d packs are connected and no more are allowed: stop one, or put its tools into another", len(ps.connects))
	}
	if size > allBytes {
		return core.NewFault(core.CodeTooLarge, "the definitions of all tools would have %d bytes, the limit is %d: shorten descriptions and schemas", size, allBytes)
	}
	for _, t := range p.tools {
		if by := ps.tools[t.Name]; by != nil && by.pack != old {
			return core.NewFault(core.CodeConflict, "tool name collision: tool '%s' already registered by pack '%s'", t.Name, by.pack.id)
		}
	}
	if old == nil {
		old = p
		ps.connects[p.session] = p
	}
	ps.withdraw(old)
	old.tools, old.size = p.tools, p.size
	for _, t := range old.tools {
		t.pack = old
		ps.tools[t.Name] = t
	}
	ps.changed()
	return nil
}

// withdraw takes the tools of a pack away. Callers hold mu.
func (ps *packs) withdraw(p *pack) {
	maps.DeleteFunc(ps.tools, func(_ string, t *packTool) bool { return t.pack == p })
}

// changed tells who watches. Callers hold mu.
func (ps *packs) changed() {
	for s := range ps.watchers {
		s.inbox.toolsChanged()
	}
}

// WatchTools makes Next return a batch with ToolsChanged whenever packs came, went
// or changed after this call.
func (s *Session) WatchTools() {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.closed {
		return
	}
	h.packs.mu.Lock()
	defer h.packs.mu.Unlock()
	h.packs.watchers[s] = struct{}{}
}

// offered returns the tools of packs for which the capabilities are enough.
func (ps *packs) offered(capabilities []string) []tool.Definition {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	var out []tool.Definition
	for _, t := range ps.tools {
		if t.CheckCaller(capabilities) == nil {
			out = append(out, t.Definition)
		}
	}
	slices.SortFunc(out, func(a, b tool.Definition) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// leave forgets a session that closes: as a pack, whose callers are answered at
// once, as a watcher, and as a caller.
func (ps *packs) leave(s *Session, reason *core.Fault) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	delete(ps.watchers, s)
	p := ps.connects[s]
	for _, c := range ps.calls {
		switch {
		case p != nil && c.pack == p:
			if !c.settled {
				ps.settle(c, nil, core.NewFault(core.CodeUnreachable, "pack %s left: %s", p.id, reason.Message))
			}
			delete(ps.calls, c.ID)
		case c.caller == s && !c.taken && !s.identity.Keep:
			ps.drop(c) // the pack has not been told: nobody needs it to be
		}
	}
	if p != nil {
		delete(ps.connects, s)
		ps.withdraw(p)
		ps.changed()
		s.hub.log.Info("pack left", "pack", p.id, "reason", reason.Message)
	}
}

// stop answers all that waits: the hub has stopped.
func (ps *packs) stop(reason *core.Fault) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.stopped = reason
	for _, c := range ps.calls {
		if !c.settled {
			ps.settle(c, nil, reason)
		}
	}
}
