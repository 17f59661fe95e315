package pack

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// listed is a tool of the server.
type listed struct {
	tool.Definition // as the hub offers it
	name            string
	// headers are the arguments that streamable HTTP repeats as headers.
	headers []wire.Mirrored
}

// leftOut is a tool that is not offered, and why.
type leftOut struct{ name, why string }

// readTool reads a tool of a list (2026-07-28, server/tools, "Tool"; 2025-11-25 for
// execution). The error says why it cannot be offered.
//
// mirror says that the server is one of HTTP, for which the annotations of headers count.
func readTool(pack string, t strictjson.Value, mirror bool) (listed, error) {
	name, ok := t.Get("name").Text()
	switch full := pack + "." + name; {
	case !ok || name == "":
		return listed{}, fmt.Errorf("it has no name")
	case strings.ContainsFunc(name, wire.NotOfNames):
		return listed{name: name}, fmt.Errorf("its name cannot be one of a tool: only letters, digits, _, - and . may be in it")
	case len(full) > maxToolName:
		return listed{name: name}, fmt.Errorf("its name makes %d bytes with that of the pack, the limit is %d", len(full), maxToolName)
	}
	l := listed{name: name}
	if support, _ := t.Get("execution", "taskSupport").Text(); support == "required" {
		return l, fmt.Errorf("it can only be called as a task of the protocol 2025-11-25 (taskSupport: required), which later versions do not have")
	}
	schema := t.Get("inputSchema")
	if !schema.Absent() && schema.Kind() != strictjson.Object {
		return l, fmt.Errorf("its inputSchema is %.40s, want an object", schema.Raw())
	}
	if mirror {
		headers, err := wire.MirroredIn(schema)
		if err != nil {
			return l, err
		}
		l.headers = headers
	}
	description, _ := t.Get("description").Text()
	if description == "" {
		description, _ = t.Get("title").Text()
	}
	l.Definition = tool.Definition{Name: pack + "." + name, Description: description, Checks: true} // 2026-07-28, server/tools, "Security Considerations"
	if !schema.Absent() {
		l.InputSchema = schema.Clone()
	}
	return l, nil
}

// catalog is the list of tools of a server, from one page or several.
type catalog struct {
	pack    string
	hub     string // the id of this hub
	mirror  bool
	own     bool // a tool of this hub is in it
	tools   []listed
	names   map[string]bool
	refused []leftOut
	bytes   int
}

// The limits of a list. A server that goes on after them has no end.
const (
	maxPages     = 100
	maxListBytes = 8 << 20
)

// add reads one page and returns the cursor of the next; "" at the end.
func (c *catalog) add(page strictjson.Value) (next string, err error) {
	if c.names == nil {
		c.names = map[string]bool{}
	}
	tools := page.Get("tools")
	if tools.Kind() != strictjson.Array {
		return "", fmt.Errorf("its list of tools is %.40s, want an array", rawOr(tools, "missing"))
	}
	if c.bytes += len(page.Raw()); c.bytes > maxListBytes {
		return "", fmt.Errorf("its list of tools has more than %d bytes", maxListBytes)
	}
	for t := range tools.Items() {
		l, err := readTool(c.pack, t, c.mirror)
		if err == nil {
			err = c.through(&l, t.Get("_meta", wire.MetaHubs))
		}
		if err == nil && c.names[l.name] {
			err = fmt.Errorf("a tool before it in the list has the same name")
		}
		if err != nil {
			c.refused = append(c.refused, leftOut{l.name, err.Error()})
			continue
		}
		c.names[l.name] = true
		c.tools = append(c.tools, l)
	}
	next, _ = page.Get("nextCursor").Text()
	return next, nil
}

// maxHubs is how many hubs a tool may come through.
const maxHubs = 8

// through notes the hubs that a tool came through. One that came through this hub would be
// offered in its list again, under a longer name each time, and end in a loop when it is called.
func (c *catalog) through(l *listed, hubs strictjson.Value) error {
	if hubs.Absent() || hubs.Decode(&l.Hubs) != nil { // no hub wrote it
		return nil
	}
	switch {
	case c.hub != "" && slices.Contains(l.Hubs, c.hub):
		c.own = true
		return fmt.Errorf("it is a tool of this hub, which would call itself")
	case len(l.Hubs) > maxHubs:
		return fmt.Errorf("it came through more than %d hubs", maxHubs)
	}
	return nil
}

func rawOr(v strictjson.Value, none string) json.RawMessage {
	if !v.Exists() {
		return json.RawMessage(none)
	}
	return v.Raw()
}
