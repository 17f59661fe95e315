package command

import (
	"slices"
	"time"
)

// minRest is how many columns the last column of a fitted table has before others are left out.
const minRest = 12

// printRows prints a table that fits a terminal: where too little is left for its last column, the columns named spare
// are left out, the first first. What is no terminal gets all of it.
func printRows(to *hubFlags, heads []string, rows [][]string, spare ...string) error {
	for to.fits() && len(spare) > 0 && columnsBefore(heads, rows)+minRest > widthOf(to.Out) {
		n := slices.Index(heads, spare[0])
		heads, spare = slices.Delete(slices.Clone(heads), n, n+1), spare[1:]
		for i, row := range rows {
			rows[i] = slices.Delete(row, n, n+1)
		}
	}
	t := newTable(to.Out, heads...)
	t.fit()
	for _, row := range rows {
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
		sum += most + columnGap
	}
	return sum
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
