package wire

import (
	"encoding/json"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// ReadInput puts the input of a task into a request, as the input of a task_request
// is: a text is the content, of an object the members with a meaning are taken out and
// the rest is the data. The error is a Fault.
func ReadInput(input json.RawMessage, r *core.Request) error {
	if len(input) == 0 {
		return nil
	}
	return readInput(strictjson.ParseValid(input), r)
}

// Result is an answer in the form that task_result.result has.
func Result(a core.Answer) (json.RawMessage, error) {
	return Answer{Text: a.Text, Data: a.Data, Files: a.Files}.value()
}

// CodeOf is what this dialect calls the code of a Fault.
func CodeOf(f *core.Fault) string { return errorOf(f, nil).Code }

// NamingPattern is the Foreign of a request that names a pattern of Parallax: its peers
// are told it, and nobody else.
func NamingPattern(name, version string) *core.Foreign {
	pattern := Members{"patternName": Quoted(name)}
	if version != "" {
		pattern["patternVersion"] = Quoted(version)
	}
	payload, _ := Marshal(pattern) // texts always encode
	return &core.Foreign{Dialect: Dialect, JSON: under("payload", payload)}
}

// Input is the inverse of [ReadInput].
func Input(r core.Request) (json.RawMessage, error) { return inputOf(r) }
