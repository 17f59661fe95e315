package cluster

import (
	"slices"

	"github.com/dragoman-hub/dragoman/core/journal"
)

// Claimed reports whether a claim in the store names the connection of a life.
func Claimed(text string, l journal.Life, connection uint64) bool {
	c, err := read[claim]([]byte(text), kindClaim)
	return err == nil && slices.ContainsFunc(append(c.Former, c.holder), func(h holder) bool { return h.life() == l && h.Connection == connection })
}
