package command

import (
	"strings"

	"golang.org/x/text/width"
)

// columnsOf returns how many columns of a terminal a character takes at most.
func columnsOf(r rune) int {
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	if r == '\t' {
		return 8
	}
	return 1
}

// columns returns how many columns of a terminal a text takes at most.
func columns(text string) (n int) {
	for _, r := range text {
		n += columnsOf(r)
	}
	return n
}

// cut returns the beginning of a text that fits in columns, with an ellipsis if that is not all of it.
func cut(text string, most int) string {
	if columns(text) <= most {
		return text
	}
	n := 0
	for i, r := range text {
		if n += columnsOf(r); n >= most {
			return strings.TrimRight(text[:i], " ") + "…"
		}
	}
	return text
}

// rowsOf splits a text into the rows that it takes on a terminal. Together they are the text.
func rowsOf(text string, most int) (rows []string) {
	begin, n := 0, 0
	for i, r := range text {
		if n += columnsOf(r); n > most && r != '\n' {
			rows = append(rows, text[begin:i])
			begin, n = i, columnsOf(r)
		}
		if r == '\n' {
			rows = append(rows, text[begin:i+1])
			begin, n = i+1, 0
		}
	}
	return append(rows, text[begin:])
}
