package core

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Options are what an agent is set to for one task, by the ids that it announces: its mode, its model and
// whatever else it offers. A value is that of a choice, or true or false.
type Options map[string]string

// The names that every agent means the same by.
const (
	OptionMode  = "mode"
	OptionModel = "model"
)

const (
	// maxOptions is how many a request may have.
	maxOptions = 32
	// maxOptionBytes is how long a name or a value may be.
	maxOptionBytes = 256
)

// UnmarshalJSON reads an object whose values are texts, true, false or numbers.
func (o *Options) UnmarshalJSON(b []byte) error {
	var all map[string]any
	if err := json.Unmarshal(b, &all); err != nil {
		return NewFault(CodeInvalid, `options: want an object such as {"mode": "plan"}`)
	}
	*o = nil
	for name, value := range all {
		text, is := value.(string)
		if !is {
			switch value.(type) {
			case bool, float64:
			default:
				return NewFault(CodeInvalid, "options.%.80s: want a text, true or false", name)
			}
			raw, _ := json.Marshal(value)
			text = string(raw)
		}
		if *o == nil {
			*o = Options{}
		}
		(*o)[name] = text
	}
	return nil
}

// Check returns an invalid Fault for a name or a value that is none.
func (o Options) Check() error {
	if len(o) > maxOptions {
		return NewFault(CodeInvalid, "options: want at most %d, got %d", maxOptions, len(o))
	}
	for name, value := range o {
		for _, text := range []string{name, value} {
			if text == "" || len(text) > maxOptionBytes || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
				return NewFault(CodeInvalid, "options: want names and values of 1 to %d bytes in a line, got %.80q: %.80q", maxOptionBytes, name, value)
			}
		}
	}
	return nil
}

// Names returns the names in the order in which they are set: the model first, which may change what else
// there is, then the mode.
func (o Options) Names() []string {
	first := []string{OptionMode, OptionModel} // those that are not among them have -1
	return slices.SortedFunc(maps.Keys(o), func(a, b string) int {
		return cmp.Or(slices.Index(first, b)-slices.Index(first, a), strings.Compare(a, b))
	})
}

// size estimates the memory in bytes.
func (o Options) size() (n int) {
	for name, value := range o {
		n += len(name) + len(value) + 48
	}
	return n
}
