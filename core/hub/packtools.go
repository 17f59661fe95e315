package hub

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

// What a pack may say of one tool.
const (
	maxToolName  = 128 // bytes, as MCP has it
	maxToolBytes = 64 << 10
)

// read makes a pack of what a session says of it.
func (ps *packs) read(id string, tools []tool.Definition) (*pack, error) {
	switch {
	case strings.TrimSpace(id) != id || id == "" || !utf8.ValidString(id) || strings.ContainsFunc(id, unicode.IsControl):
		return nil, core.NewFault(core.CodeInvalid, "the pack id %q cannot be one: use letters, without control characters or blanks around it", id)
	case len(id) > core.MaxIDBytes:
		return nil, core.NewFault(core.CodeInvalid, "the pack id has %d bytes: use at most %d", len(id), core.MaxIDBytes)
	case len(tools) > ps.limits.PackTools:
		return nil, core.NewFault(core.CodeTooLarge, "the pack has %d tools, the limit is %d: split it", len(tools), ps.limits.PackTools)
	}
	p := &pack{id: id}
	seen := map[string]bool{}
	for _, t := range tools {
		read, err := ps.readTool(t)
		if err != nil {
			return nil, err
		}
		if seen[t.Name] {
			return nil, core.NewFault(core.CodeInvalid, "tool '%s' stands twice in the manifest: name each once", t.Name)
		}
		seen[t.Name] = true
		p.tools = append(p.tools, read)
		p.size += len(t.Name) + len(t.Description) + len(read.InputSchema)
	}
	return p, nil
}

func (ps *packs) readTool(t tool.Definition) (*packTool, error) {
	if len(t.Name) == 0 || len(t.Name) > maxToolName || strings.ContainsFunc(t.Name, notOfToolNames) {
		return nil, core.NewFault(core.CodeInvalid, "the tool name %q cannot be one: use 1 to %d letters, digits, _, - and .", t.Name, maxToolName)
	}
	for _, own := range tools {
		if own.Name == t.Name {
			return nil, core.NewFault(core.CodeConflict, "tool name collision: tool '%s' already registered as builtin", t.Name)
		}
	}
	if n := len(t.Description) + len(t.InputSchema); n > maxToolBytes {
		return nil, core.NewFault(core.CodeTooLarge, "the definition of tool %s has %d bytes, the limit is %d: shorten its description or schema", t.Name, n, maxToolBytes)
	}
	if !utf8.ValidString(t.Description) {
		return nil, core.NewFault(core.CodeInvalid, "the description of tool %s is not UTF-8", t.Name)
	}
	input, err := objectSchema(t.InputSchema)
	if err != nil {
		return nil, core.NewFault(core.CodeInvalid, "the input schema of tool %s cannot be used: %s", t.Name, err)
	}
	read := &packTool{Definition: tool.Definition{Name: t.Name, Description: t.Description, InputSchema: input, Requires: slices.Clone(t.Requires)}}
	read.Timeout = min(t.Timeout, ps.limits.MaxToolTimeout)
	if read.Timeout <= 0 {
		read.Timeout = ps.limits.ToolTimeout
	}
	if ps.schema != nil {
		if read.check, err = ps.schema(input); err != nil {
			return nil, core.NewFault(core.CodeInvalid, "the input schema of tool %s cannot be used: %s", t.Name, err)
		}
	}
	return read, nil
}

func notOfToolNames(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' && r != '.'
}

// objectSchema returns a schema that says of itself to be one of objects: tools take
// nothing else, and MCP wants it said.
func objectSchema(schema json.RawMessage) (json.RawMessage, error) {
	if len(bytes.TrimSpace(schema)) == 0 {
		return json.RawMessage(`{"type":"object"}`), nil
	}
	var members map[string]json.RawMessage
	if err := strictjson.Decode(schema, strictjson.Limits{}, &members); err != nil {
		return nil, err
	}
	switch kind, said := members["type"]; {
	case members == nil:
		return nil, errors.New("want an object, got null")
	case !said:
		members["type"] = json.RawMessage(`"object"`)
		return json.Marshal(members)
	case string(kind) != `"object"`:
		return nil, fmt.Errorf(`its type is %s, want "object"`, kind)
	}
	return slices.Clone(schema), nil
}
