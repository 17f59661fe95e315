package cluster

import "github.com/dragoman-hub/dragoman/core/journal"

// Claimed reports whether the name of an agent in the store is that of the connection of a life.
func Claimed(text string, l journal.Life, connection uint64) bool {
	s, err := readShown(text)
	return err == nil && s.life == l && s.Connection == connection
}
