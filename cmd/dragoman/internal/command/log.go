package command

import (
	"io"
	"log/slog"
	"os"

	"github.com/rs/zerolog"
	"golang.org/x/term"
)

// newLog makes a log: for people on a terminal, JSON elsewhere. The packages log through
// slog, zerolog formats.
func newLog(w io.Writer, level, format string) *slog.Logger {
	human := format == "human"
	if format == "auto" {
		human = isTerminal(w)
	}
	if human {
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: "15:04:05", NoColor: !colors(w)}
	}
	least, err := zerolog.ParseLevel(level)
	if err != nil {
		least = zerolog.InfoLevel // the configuration has been checked
	}
	return slog.New(zerolog.NewSlogHandler(zerolog.New(w).Level(least).With().Timestamp().Logger()))
}

// colors reports whether output to w may have colours: on a terminal, unless NO_COLOR is
// set (no-color.org).
func colors(w any) bool { return isTerminal(w) && os.Getenv("NO_COLOR") == "" }

// isTerminal reports whether w is a terminal.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
