package command

import (
	"fmt"
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
		w = console(w)
	}
	least, err := zerolog.ParseLevel(level)
	if err != nil {
		least = zerolog.InfoLevel // the configuration has been checked
	}
	return slog.New(zerolog.NewSlogHandler(zerolog.New(w).Level(least).With().Timestamp().Logger()))
}

// console formats lines for people. What others say is in the fields; it is quoted there, but for
// what JSON and Go take for printable.
func console(w io.Writer) zerolog.ConsoleWriter {
	colored := colors(w)
	value := func(v any) string { return visible(fmt.Sprintf("%s", v)) }
	return zerolog.ConsoleWriter{
		Out: w, TimeFormat: "15:04:05", NoColor: !colored, FormatFieldValue: value,
		FormatErrFieldValue: func(v any) string {
			if !colored {
				return value(v)
			}
			return red + value(v) + plainColor
		},
		FormatPrepare: func(line map[string]any) error {
			if text, ok := line[zerolog.MessageFieldName].(string); ok {
				line[zerolog.MessageFieldName] = visible(text)
			}
			return nil
		},
	}
}

// colors reports whether output to w may have colours: on a terminal that knows them, unless
// NO_COLOR is set (no-color.org).
func colors(w any) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// isTerminal reports whether w is a terminal.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
