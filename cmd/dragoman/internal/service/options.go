package service

import (
	"path/filepath"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

// journalPath is where the journal is: the data directory, the address of a NATS server, or
// "" of one in memory.
func journalPath(c config.Config) string {
	if c.Journal.NATSURL != "" {
		return nats.Redacted(c.Journal.NATSURL)
	}
	if c.DataDir == "" {
		return ""
	}
	path, err := filepath.Abs(c.DataDir)
	if err != nil {
		return c.DataDir
	}
	return path
}

// orNever makes of a zero that a person wrote what the engine takes for never: its
// own zero stands for the default.
func orNever[N int | time.Duration](n N) N {
	if n == 0 {
		return -1
	}
	return n
}
