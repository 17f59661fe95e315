package command

import (
	"io"
	"os"
	"slices"
	"time"

	"golang.org/x/term"
)

// minRest is how many columns the last column of a fitted table has at least.
const minRest = 12

// printFitted prints a table of which the last column gets the room that a terminal has left. Where that is too little,
// the columns named spare are left out, the first first. What is no terminal gets all of it.
func printFitted(out io.Writer, heads []string, rows [][]string, spare ...string) error {
	width := terminalWidth(out)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = visible(cell)
		}
	}
	room := width - columnsBefore(heads, rows)
	for width > 0 && room < minRest && len(spare) > 0 {
		n := slices.Index(heads, spare[0])
		heads, spare = slices.Delete(slices.Clone(heads), n, n+1), spare[1:]
		for i, row := range rows {
			rows[i] = slices.Delete(row, n, n+1)
		}
		room = width - columnsBefore(heads, rows)
	}
	t := newTable(out, heads...)
	for _, row := range rows {
		if last := len(row) - 1; width > 0 {
			row[last] = cut(row[last], max(room, minRest))
		}
		t.row(row...)
	}
	return t.flush()
}

// columnsBefore returns how many columns of a terminal all but the last column of a table take.
func columnsBefore(heads []string, rows [][]string) (sum int) {
	for n := range heads[1:] {
		most := columns(heads[n])
		for _, row := range rows {
			most = max(most, columns(row[n]))
		}
		sum += most + 2
	}
	return sum
}

// terminalWidth returns the width of a terminal, and 0 for what is none.
func terminalWidth(out io.Writer) int {
	f, ok := out.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
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
