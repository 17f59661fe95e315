package command

import (
	"io"
	"time"
)

// printRows prints a table that fits a terminal.
func printRows(out io.Writer, heads []string, rows [][]string) error {
	t := newTable(out, heads...)
	t.fit()
	for _, row := range rows {
		t.row(row...)
	}
	return t.flush()
}

// shortTime formats a time as briefly as one can tell it: that of today by its hour.
func shortTime(at, now time.Time) string {
	at, now = at.Local(), now.Local()
	switch {
	case at.IsZero():
		return "-"
	case at.Format(time.DateOnly) == now.Format(time.DateOnly):
		return at.Format("15:04")
	case at.Year() == now.Year():
		return at.Format("Jan 2")
	}
	return at.Format(time.DateOnly)
}
