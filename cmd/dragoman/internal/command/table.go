package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
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
		cells[i] = visible(c)
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
