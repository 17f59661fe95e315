package hub

import (
	"maps"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// Recheck closes the sessions that read what their principals may not read any more, after the
// rules have changed. Every other right is asked for with each command. What begins to read
// meanwhile judges again once Recheck can see it.
func (h *Hub) Recheck() {
	h.mu.Lock()
	all, watchers := slices.Collect(maps.Keys(h.sessions)), maps.Clone(h.watchers)
	h.mu.Unlock()
	for _, s := range all {
		p := s.identity.Principal
		_, watchesAll := watchers[s]
		watchesAll = watchesAll || s.feed.Load() != nil
		if p.Component || watchesAll && h.MayOperate(p) {
			continue
		}
		if watchesAll || s.views.any(func(t *task.Task) bool { return !h.MayRead(p, t) }) {
			s.Close(rulesChanged())
		}
	}
}

func rulesChanged() *core.Fault {
	return core.NewFault(core.CodeNotAuthorized, "the rules have changed, and you may not read this any more: connect again")
}

// recheckAll closes a session that has begun to watch all tasks if its principal may not any more:
// a Recheck since that was allowed has not seen it.
func (s *Session) recheckAll() error {
	if p := s.identity.Principal; p.Component || s.hub.MayOperate(p) {
		return nil
	}
	s.Close(rulesChanged())
	return rulesChanged()
}

// any reports whether the function is true for a task that is watched.
func (v *views) any(is func(*task.Task) bool) bool {
	v.mu.Lock()
	all := slices.Collect(maps.Values(v.readers))
	v.mu.Unlock()
	return slices.ContainsFunc(all, func(w viewed) bool { return is(w.task) })
}
