package pack

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// The limits on the definition of one tool.
const (
	maxToolName  = 128 // bytes, as in MCP
	maxToolBytes = 64 << 10
)

// read checks the definition of a pack, and returns the tools and the size of their
// definitions.
func (r *Registry) read(id string, tools []tool.Definition) (read []*provided, size int, err error) {
	switch {
	case strings.TrimSpace(id) != id || id == "" || !utf8.ValidString(id) || strings.ContainsFunc(id, unicode.IsControl):
		return nil, 0, core.NewFault(core.CodeInvalid, "the pack id %q is invalid: use letters, without control characters or blanks around it", id)
	case len(id) > core.MaxIDBytes:
		return nil, 0, core.NewFault(core.CodeInvalid, "the pack id has %d bytes: use at most %d", len(id), core.MaxIDBytes)
	case len(tools) > r.opts.Limits.Tools:
		return nil, 0, core.NewFault(core.CodeTooLarge, "the pack has %d tools, the limit is %d: split it", len(tools), r.opts.Limits.Tools)
	}
	seen := map[string]bool{}
	for _, t := range tools {
		one, err := r.readTool(t)
		if err != nil {
			return nil, 0, err
		}
		if seen[t.Name] {
			return nil, 0, core.NewFault(core.CodeInvalid, "tool '%s' is in the manifest twice: name each once", t.Name)
		}
		seen[t.Name] = true
		read = append(read, one)
		size += len(t.Name) + len(t.Description) + len(one.InputSchema)
	}
	return read, size, nil
}

func (r *Registry) readTool(t tool.Definition) (*provided, error) {
	if len(t.Name) == 0 || len(t.Name) > maxToolName || strings.ContainsFunc(t.Name, notOfToolNames) {
		return nil, core.NewFault(core.CodeInvalid, "the tool name %q cannot be one: use 1 to %d letters, digits, _, - and .", t.Name, maxToolName)
	}
	if r.opts.Reserved(t.Name) {
		return nil, core.NewFault(core.CodeConflict, "tool name collision: tool '%s' already registered as builtin", t.Name)
	}
	if n := len(t.Description) + len(t.InputSchema); n > maxToolBytes {
		return nil, core.NewFault(core.CodeTooLarge, "the definition of tool %s has %d bytes, the limit is %d: shorten its description or schema", t.Name, n, maxToolBytes)
	}
	if !utf8.ValidString(t.Description) {
		return nil, core.NewFault(core.CodeInvalid, "the description of tool %s is not UTF-8", t.Name)
	}
	unusable := func(err error) error {
		return core.NewFault(core.CodeInvalid, "the input schema of tool %s cannot be used: %s", t.Name, err)
	}
	read := &provided{Definition: t}
	var err error
	if read.InputSchema, err = objectSchema(t.InputSchema); err != nil {
		return nil, unusable(err)
	}
	if r.opts.Schema != nil {
		read.check, err = r.opts.Schema(read.InputSchema)
		if err != nil && t.Checks {
			read.check, err = r.opts.Schema(anyObject)
		}
		if err != nil {
			return nil, unusable(err)
		}
	}
	read.Requires = slices.Clone(t.Requires)
	if read.Timeout = min(t.Timeout, r.opts.Limits.MaxTimeout); read.Timeout <= 0 {
		read.Timeout = r.opts.Limits.Timeout
	}
	return read, nil
}

func notOfToolNames(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' && r != '.'
}

// anyObject is the schema of a tool that takes any object.
var anyObject = json.RawMessage(`{"type":"object"}`)

// objectSchema returns the schema with the type object: tools accept nothing else, and MCP
// requires it.
func objectSchema(schema json.RawMessage) (json.RawMessage, error) {
	if len(bytes.TrimSpace(schema)) == 0 {
		return anyObject, nil
	}
	var members map[string]json.RawMessage
	if err := strictjson.Decode(schema, strictjson.Limits{}, &members); err != nil {
		return nil, err
	}
	switch kind, ok := members["type"]; {
	case members == nil:
		return nil, errors.New("want an object, got null")
	case !ok:
		members["type"] = json.RawMessage(`"object"`)
		return json.Marshal(members)
	case string(kind) != `"object"`:
		return nil, fmt.Errorf(`its type is %s, want "object"`, kind)
	}
	return slices.Clone(schema), nil
}
