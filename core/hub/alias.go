package hub

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
)

// aliasBytes is how much of the digest an alias shows: as much as ids that were
// derived from a key.
const aliasBytes = 16

// keyPrefix stands before ids that were derived from an Ed25519 key.
const keyPrefix = "ed25519."

// Alias returns the id under which the agent may be addressed beside its own, where
// no other agent has that: the lowercase hex of the first 16 bytes of the SHA-256
// of its id.
func Alias(id core.AgentID) core.AgentID {
	sum := sha256.Sum256([]byte(id))
	return core.AgentID(hex.EncodeToString(sum[:aliasBytes]))
}

// SameAgent reports whether text names the agent: as its id, by its alias, or as
// the same id derived from a key, with or without the prefix and in any case.
func SameAgent(text string, id core.AgentID) bool {
	if text == string(id) {
		return true
	}
	key, ok := hexOf(core.AgentID(text))
	if !ok {
		return false
	}
	own, derived := hexOf(id)
	return key == Alias(id) || derived && key == own
}

// hexOf returns the digits of an id that is derived from a key or an alias, in the
// form that [Alias] gives.
func hexOf(id core.AgentID) (digits core.AgentID, ok bool) {
	text := string(id)
	if len(text) > len(keyPrefix) && strings.EqualFold(text[:len(keyPrefix)], keyPrefix) {
		text = text[len(keyPrefix):]
	}
	if len(text) != 2*aliasBytes {
		return "", false
	}
	if _, err := hex.DecodeString(text); err != nil {
		return "", false
	}
	return core.AgentID(strings.ToLower(text)), true
}

// aliases finds ids by what else they go by, in the order in which they came.
type aliases map[core.AgentID][]core.AgentID

func (a aliases) add(id core.AgentID) {
	for _, name := range namesOf(id) {
		if !slices.Contains(a[name], id) {
			a[name] = append(a[name], id)
		}
	}
}

func (a aliases) remove(id core.AgentID) {
	for _, name := range namesOf(id) {
		a[name] = slices.DeleteFunc(a[name], func(o core.AgentID) bool { return o == id })
		if len(a[name]) == 0 {
			delete(a, name)
		}
	}
}

// namesOf are what an id goes by beside itself.
func namesOf(id core.AgentID) []core.AgentID {
	names := []core.AgentID{Alias(id)}
	if digits, derived := hexOf(id); derived {
		names = append(names, digits)
	}
	return names
}

// resolve returns the id of the agent that goes by id, which may be an alias. What
// nobody goes by is returned as it is. Callers hold mu.
func (h *Hub) resolve(id core.AgentID) core.AgentID {
	if h.answerer(id) != nil {
		return id
	}
	if digits, ok := hexOf(id); ok {
		if of := h.aliases[digits]; len(of) > 0 {
			return of[0]
		}
	}
	return id
}

// forget drops the aliases of an id that nobody goes by any more. Callers hold mu.
func (h *Hub) forget(id core.AgentID) {
	if h.answerer(id) == nil {
		h.aliases.remove(id)
	}
}
