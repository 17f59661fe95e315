package core

import (
	"strconv"
	"strings"

	"github.com/dragoman-hub/dragoman/core/suggest"
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
	if name := suggest.Nearest(text, names); name != "" {
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
