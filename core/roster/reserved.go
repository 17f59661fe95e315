package roster

import (
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
)

// Reserved reports whether the member cannot have the id, though no agent has it, because what
// is sent to it means somebody else who is connected: it is another form of an id (see
// [SameAgent]), a member of another principal is on standby for it, or it is the name or, but for
// its case, the id of an agent of another principal. Two principals are the same if neither has
// authenticated. A name is what an agent says of itself, so it keeps no id from a member that owns
// the id: see [owns].
func (r *Roster) Reserved(id core.AgentID, m Member) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if digits, ok := hexOf(id); ok && slices.ContainsFunc(r.aliases[digits], func(other core.AgentID) bool { return other != id }) {
		return true
	}
	if slices.ContainsFunc(r.standby[id], func(e Entry) bool { return e.Member != m && !samePrincipal(e.Member, m) }) {
		return true
	}
	return !owns(m, id) && slices.ContainsFunc(r.called[strings.ToLower(string(id))], func(other core.AgentID) bool {
		by := r.entries[other].Member
		return other != id && by != m && !samePrincipal(by, m)
	})
}

// owns reports whether the id is that of the member's principal, or one that its credential
// names without *.
func owns(m Member, id core.AgentID) bool {
	p := m.Principal()
	if !p.Authenticated {
		return false
	}
	return p.ID == string(id) || p.Credential != nil && slices.Contains(p.Credential.Agents, string(id))
}

// samePrincipal reports whether two members have the same principal.
func samePrincipal(a, b Member) bool {
	first, second := a.Principal(), b.Principal()
	return first.Authenticated == second.Authenticated && (!first.Authenticated || first.ID == second.ID)
}

// called finds agents by their names and ids, without regard to case.
type called map[string][]core.AgentID

func (c called) add(card core.Card) {
	name, id := strings.ToLower(card.Name), strings.ToLower(string(card.ID))
	if c[id] = append(c[id], card.ID); name != id {
		c[name] = append(c[name], card.ID)
	}
}

func (c called) remove(card core.Card) {
	for _, text := range [...]string{strings.ToLower(card.Name), strings.ToLower(string(card.ID))} {
		if c[text] = slices.DeleteFunc(c[text], func(id core.AgentID) bool { return id == card.ID }); len(c[text]) == 0 {
			delete(c, text)
		}
	}
}
