package command

import (
	"strings"
	"unicode"

	letters "github.com/dragoman-hub/dragoman/core/visible"
)

// What agents, peers and cards say is written through the functions of this file and nothing
// else: control characters, those that change the direction of writing and those that nobody
// sees are shown as \u202e or \x1b, so that a text can neither control the terminal nor look
// like another.

// visibleLines shows a text with its lines and tabs.
func visibleLines(text string) string { return letters.Text(text) }

// visible shows the whole of a text on one line, with its line ends as \n.
func visible(text string) string { return letters.Line(text) }

// oneLine shows a text on one line, with one blank for all white space between words.
func oneLine(text string) string { return visible(strings.Join(strings.Fields(text), " ")) }

// block shows a text with its lines indented but the first, so that none of them looks like one
// of the program's own.
func block(text string) string { return strings.ReplaceAll(visibleLines(text), "\n", "\n  ") }

// summaryLength is the maximum length of brief.
const summaryLength = 120

// brief is oneLine of the beginning of a text.
func brief(text string) string {
	text = oneLine(text)
	if r := []rune(text); len(r) > summaryLength {
		text = string(r[:summaryLength]) + "…"
	}
	return text
}

// jsonText shows JSON.
func jsonText(text []byte) string { return letters.JSON(string(text)) }

// quoted quotes a word for a shell, if necessary.
func quoted(word string) string {
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return letters.Hidden(r) || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.:/@", r)
	}) {
		return word
	}
	if strings.ContainsAny(word, "$`\\!") || strings.ContainsFunc(word, letters.Hidden) { // a shell reads $'' as Go does
		return "$'" + strings.NewReplacer("'", `\'`).Replace(visible(strings.ReplaceAll(word, `\`, `\\`))) + "'"
	}
	return `"` + strings.ReplaceAll(word, `"`, `\"`) + `"`
}
