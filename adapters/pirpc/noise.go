package pirpc

import (
	"context"
	"log/slog"
)

// noise counts and logs what a process says wrong: the first times as warnings, for a broken one
// may go on for ever. The reader loop uses it.
type noise struct {
	log   *slog.Logger
	count func(string)
	n     int
}

// loud is how many warnings one process may cause.
const loud = 20

func (n *noise) skip(name, message string, args ...any) {
	n.count(name)
	level := slog.LevelWarn
	if n.n++; n.n > loud {
		level = slog.LevelDebug
	}
	n.log.Log(context.Background(), level, message, args...)
}

// excerpt returns the beginning of a line as text.
func excerpt(line []byte) string {
	const most = 200
	if len(line) <= most {
		return string(line)
	}
	return string(line[:most]) + "..."
}
