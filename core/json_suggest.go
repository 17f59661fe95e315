package core

import (
	"strconv"
	"strings"
)

// jsonUnknownKey words what is wrong with a key that is none of names, or
// returns "" when nothing is.
func jsonUnknownKey(key []byte, names []string, strict bool) string {
	text := string(key)
	for _, name := range names {
		if strings.EqualFold(text, name) {
			return "unknown key " + jsonQuote(key) + ": did you mean " + strconv.Quote(name) + "?"
		}
	}
	if !strict {
		return ""
	}
	if name, ok := jsonNearest(text, names); ok {
		return "unknown key " + jsonQuote(key) + ": did you mean " + strconv.Quote(name) + "?"
	}
	if len(names) == 0 {
		return "unknown key " + jsonQuote(key) + ": no keys are known here"
	}
	const shown = 12
	list := strings.Join(names[:min(shown, len(names))], ", ")
	if len(names) > shown {
		list += ", ..."
	}
	return "unknown key " + jsonQuote(key) + ": the keys here are " + list
}

// jsonNearest returns the name that a slip of the hand could have turned into
// text, the first of several.
func jsonNearest(text string, names []string) (nearest string, ok bool) {
	if len(text) > jsonQuoteBytes {
		return "", false
	}
	text = jsonLetters(text)
	least := 1 + max(1, len(text)/3)
	for _, name := range names {
		if d := jsonDistance(text, jsonLetters(name)); d < least {
			nearest, least, ok = name, d, true
		}
	}
	return nearest, ok
}

// jsonLetters drops what people vary between styles of names: max_tokens,
// max-tokens and maxTokens are near one another.
func jsonLetters(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", ".", "").Replace(name))
}

// jsonDistance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b, byte by byte.
func jsonDistance(a, b string) int {
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := above[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			row[j] = min(above[j]+1, row[j-1]+1, replace)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above, row = above, row, before
	}
	return above[len(b)]
}
