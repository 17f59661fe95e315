package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// table prints rows in aligned columns.
type table struct {
	out   io.Writer
	width int // of the terminal that it has to fit; 0 for none
	rows  [][]string
}

func newTable(out io.Writer, heads ...string) *table {
	t := &table{out: out}
	t.row(heads...)
	return t
}

// fit has the table fit the terminal that it is printed to, if it is one.
func (t *table) fit() {
	if isTerminal(t.out) {
		t.width = widthOf(t.out)
	}
}

// row adds a row. Missing cells are empty.
func (t *table) row(cells ...string) {
	for i, c := range cells {
		cells[i] = visible(c)
	}
	t.rows = append(t.rows, cells)
}

// columnGap is how many blanks are between columns.
const columnGap = 2

// flush prints the table without blanks at the end of its lines.
func (t *table) flush() error {
	widths := t.widths()
	for _, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			if t.width > 0 {
				cell = cut(cell, widths[i])
			}
			line.WriteString(cell + strings.Repeat(" ", max(0, widths[i]-columns(cell)+columnGap)))
		}
		if _, err := fmt.Fprintln(t.out, strings.TrimRight(line.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

// widths returns how wide the columns are. In a table that has to fit the widest ones give way, but for the first,
// which has what others are named by.
func (t *table) widths() []int {
	most := 0
	for _, row := range t.rows {
		most = max(most, len(row))
	}
	widths := make([]int, most)
	for _, row := range t.rows {
		for i, cell := range row {
			if i < len(row)-1 || i == most-1 { // the end of a shorter row may reach further
				widths[i] = max(widths[i], columns(cell))
			}
		}
	}
	over := -t.width - columnGap
	for _, w := range widths {
		over += w + columnGap
	}
	const least = 4
	for ; t.width > 0 && over > 0 && len(widths) > 1; over-- {
		rest := widths[1:]
		widest := slices.Index(rest, slices.Max(rest))
		if rest[widest] <= least {
			break
		}
		rest[widest]--
	}
	return widths
}

// printJSON prints a value as JSON.
func printJSON(out io.Writer, v any) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // it is not for browsers
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(out, jsonText(text.Bytes()))
	return err
}

func orDash(s string) string {
	if s == "" || s == "[]" {
		return "-"
	}
	return s
}
