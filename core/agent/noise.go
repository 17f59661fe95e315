package agent

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// maxWarnings is how many warnings a Noise logs.
const maxWarnings = 20

// Noise logs what one connection of an agent says wrong, so that operators see it: the first 20
// times as warnings, then at the level debug, because a broken agent may go on for ever. It is
// safe for concurrent use.
type Noise struct {
	log   *slog.Logger
	count func(name string)
	n     atomic.Int32
}

// NewNoise returns a Noise for a connection. count counts what was skipped, by its name; nil for
// nothing that counts.
func NewNoise(log *slog.Logger, count func(name string)) *Noise {
	if count == nil {
		count = func(string) {}
	}
	return &Noise{log: log, count: count}
}

// Skip counts and logs something that was skipped.
func (n *Noise) Skip(name, message string, args ...any) {
	n.count(name)
	level := slog.LevelWarn
	if n.n.Add(1) > maxWarnings {
		level = slog.LevelDebug
	}
	n.log.Log(context.Background(), level, message, args...)
}

// Excerpt returns the beginning of a line as text, for a log.
func Excerpt(line []byte) string {
	const most = 200
	if len(line) <= most {
		return string(line)
	}
	return string(line[:most]) + "..."
}
