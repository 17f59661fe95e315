package command

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
)

// table prints rows in aligned columns.
type table struct {
	out     io.Writer
	text    *strings.Builder
	w       *tabwriter.Writer
	columns int
}

func newTable(out io.Writer, heads ...string) *table {
	text := new(strings.Builder)
	t := &table{out, text, tabwriter.NewWriter(text, 0, 4, 2, ' ', 0), len(heads)}
	t.row(heads...)
	return t
}

// row adds a row. Missing cells are empty: a shorter line would end the columns above it.
func (t *table) row(cells ...string) {
	for i, c := range cells {
		cells[i] = strings.Map(printable, c)
	}
	fmt.Fprintln(t.w, strings.Join(cells, "\t")+strings.Repeat("\t", max(0, t.columns-len(cells))))
}

// flush prints the table without blanks at the end of its lines.
func (t *table) flush() error {
	if err := t.w.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(t.text.String()) {
		if _, err := fmt.Fprintln(t.out, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// printJSON prints a value as JSON.
func printJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false) // it is not for browsers
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func orDash(s string) string {
	if s == "" || s == "[]" {
		return "-"
	}
	return s
}

// quoted quotes a word for a shell, if necessary.
func quoted(word string) string {
	if strings.ContainsFunc(word, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.:/@", r)
	}) {
		return strconv.Quote(word)
	}
	return word
}
