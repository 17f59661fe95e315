package client

import (
	"fmt"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
)

// contextLines is how many unchanged lines a diff shows on each side.
const contextLines = 3

// unified returns a diff as one hunk in the unified format. Its line numbers count from the
// beginning of the texts, which agents may have cut out of a file.
func unified(d wire.ToolContent) []byte {
	var before []string
	from := "/dev/null"
	if d.OldText != nil {
		before, from = lines(*d.OldText), d.Path
	}
	after := lines(*d.NewText)
	same := 0
	for same < len(before) && same < len(after) && before[same] == after[same] {
		same++
	}
	tail := 0
	for tail < len(before)-same && tail < len(after)-same && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}
	start := max(0, same-contextLines)
	rest := max(0, tail-contextLines)
	oldEnd, newEnd := len(before)-rest, len(after)-rest

	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", from, d.Path)
	if same == len(before) && same == len(after) {
		return []byte(b.String())
	}
	fmt.Fprintf(&b, "@@ -%s +%s @@\n", span(start, oldEnd), span(start, newEnd))
	write := func(mark string, part []string) {
		for _, line := range part {
			b.WriteString(mark)
			b.WriteString(line)
			if !strings.HasSuffix(line, "\n") {
				b.WriteString("\n\\ No newline at end of file\n")
			}
		}
	}
	write(" ", before[start:same])
	write("-", before[same:len(before)-tail])
	write("+", after[same:len(after)-tail])
	write(" ", before[len(before)-tail:oldEnd])
	return []byte(b.String())
}

// span returns the place of lines in the header of a hunk.
func span(from, to int) string {
	if from == to {
		return fmt.Sprintf("%d,0", from)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

// lines returns the lines of a text with their ends.
func lines(text string) []string {
	all := strings.SplitAfter(text, "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}
