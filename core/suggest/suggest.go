package suggest

import "strings"

// compared is how many bytes of a name count.
const compared = 64

// separators are ignored, so that max_tokens, max-tokens and maxTokens are equal.
var separators = strings.NewReplacer("_", "", "-", "", ".", "")

// Nearest returns the name of which text may be a misspelling, or "" if there is none: about
// one letter in three may be wrong. Case and separators do not count. A dotted name is also
// found by its last part: hops finds limits.hops. Of equally near names the first is
// returned; a match of the whole name comes before one of its last part.
func Nearest(text string, names []string) string {
	if len(text) > compared {
		return ""
	}
	nearest, least := closest(letters(text), names, letters)
	if last, d := closest(letters(lastPart(text)), names, func(name string) string { return letters(lastPart(name)) }); d < least {
		nearest = last
	}
	return nearest
}

// closest returns the name whose form has the least distance from text, and that distance;
// "" and compared if all are too far away.
func closest(text string, names []string, form func(string) string) (nearest string, least int) {
	limit := max(1, len(text)/3)
	least = compared
	for _, name := range names {
		if d := Distance(text, form(name)); d <= limit && d < least {
			nearest, least = name, d
		}
	}
	return nearest, least
}

func letters(name string) string { return strings.ToLower(separators.Replace(name)) }

func lastPart(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// Distance returns the number of insertions, deletions, replacements and swaps of neighbours
// that turn a into b, where no byte is part of two of them. It compares the first 64 bytes.
func Distance(a, b string) int {
	a, b = a[:min(len(a), compared)], b[:min(len(b), compared)]
	var rows [3][compared + 1]int
	before, above, row := &rows[0], &rows[1], &rows[2]
	for j := range above {
		above[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			d := above[j]
			if a[i] != b[j] {
				d = 1 + min(d, above[j+1], row[j])
			}
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				d = min(d, before[j-1]+1)
			}
			row[j+1] = d
		}
		before, above, row = above, row, before
	}
	return above[len(b)]
}
