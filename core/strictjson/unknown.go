package strictjson

import (
	"strconv"
	"strings"

	"github.com/dragoman-hub/dragoman/core/suggest"
)

// unknownKey returns the problem with a key that is not one of names; "" if there is none.
func unknownKey(key []byte, names []string, strict bool) string {
	text := string(key)
	for _, name := range names {
		if strings.EqualFold(text, name) {
			return "unknown key " + quote(key) + ": did you mean " + strconv.Quote(name) + "?"
		}
	}
	if !strict {
		return ""
	}
	if name := suggest.Nearest(text, names); name != "" {
		return "unknown key " + quote(key) + ": did you mean " + strconv.Quote(name) + "?"
	}
	if len(names) == 0 {
		return "unknown key " + quote(key) + ": no keys are known here"
	}
	const shown = 12
	list := strings.Join(names[:min(shown, len(names))], ", ")
	if len(names) > shown {
		list += ", ..."
	}
	return "unknown key " + quote(key) + ": the keys here are " + list
}
