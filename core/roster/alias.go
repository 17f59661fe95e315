package roster

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
)

// aliasBytes is how many bytes of the digest an alias has: as many as an id derived from a
// key.
const aliasBytes = 16

// keyPrefix begins ids that were derived from an Ed25519 key.
const keyPrefix = "ed25519."

// Alias returns the second id of an agent, which finds it unless another agent has that
// as its own id: the lowercase hex of the first 16 bytes of the SHA-256 of its id.
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

// hexOf returns the digits of an alias, or of an id that was derived from a key, in the
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

// aliasesOf returns the second ids of an agent.
func aliasesOf(id core.AgentID) []core.AgentID {
	all := []core.AgentID{Alias(id)}
	if digits, derived := hexOf(id); derived {
		all = append(all, digits)
	}
	return all
}

// aliases finds ids by their aliases. Ids with the same alias are in the order in which
// they were added.
type aliases map[core.AgentID][]core.AgentID

func (a aliases) add(id core.AgentID) {
	for _, alias := range aliasesOf(id) {
		if !slices.Contains(a[alias], id) {
			a[alias] = append(a[alias], id)
		}
	}
}

func (a aliases) remove(id core.AgentID) {
	for _, alias := range aliasesOf(id) {
		a[alias] = slices.DeleteFunc(a[alias], func(o core.AgentID) bool { return o == id })
		if len(a[alias]) == 0 {
			delete(a, alias)
		}
	}
}
