package acp

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
)

// aliasBytes is how much of the digest an alias shows: as much as the ids that ACP
// derives from keys.
const aliasBytes = 16

// keyPrefix stands before ids that were derived from an Ed25519 key.
const keyPrefix = "ed25519."

// Alias returns the hex id under which ACP peers may address the agent beside its
// own: the lowercase hex of the first 16 bytes of the SHA-256 of its id.
func Alias(id core.AgentID) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:aliasBytes])
}

// asAlias returns text in the form that [Alias] gives, if it can be an alias:
// 32 hex digits in either case.
func asAlias(text string) (alias string, ok bool) {
	if len(text) != 2*aliasBytes {
		return "", false
	}
	if _, err := hex.DecodeString(text); err != nil {
		return "", false
	}
	return strings.ToLower(text), true
}

// sameID reports whether both texts name one agent: the same text, the same id
// derived from a key, with or without its prefix and in any case, or the alias of
// the id.
func sameID(text string, id core.AgentID) bool {
	if text == string(id) {
		return true
	}
	alias, ok := asAlias(strings.TrimPrefix(text, keyPrefix))
	if !ok {
		return false
	}
	return alias == Alias(id) || strings.EqualFold(alias, strings.TrimPrefix(string(id), keyPrefix))
}
