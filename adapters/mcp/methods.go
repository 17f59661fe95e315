package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/suggest"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// method handles a request. It returns the result, which encodes as JSON, or the error in the
// request. Until then it may stream messages.
type method func(*Server, *request, *reply) (any, *jsonrpc.Error)

// legacyMethods and modernMethods are those of each era.
var (
	legacyMethods = map[string]method{
		wire.MethodInitialize: (*Server).initialize, wire.MethodPing: (*Server).ping, wire.MethodListTools: (*Server).listTools, wire.MethodCallTool: (*Server).callTool,
	}
	modernMethods = map[string]method{
		wire.MethodDiscover: (*Server).discover, wire.MethodListTools: (*Server).listTools, wire.MethodCallTool: (*Server).callTool, wire.MethodListen: (*Server).subscribe,
		wire.MethodGetTask: aboutTask((*Server).getTask), wire.MethodUpdateTask: aboutTask((*Server).updateTask), wire.MethodCancelTask: aboutTask((*Server).cancelTask),
	}
)

// methodOf returns the method of a name in an era.
func methodOf(name string, modern bool) (method, *jsonrpc.Error) {
	all := legacyMethods
	if modern {
		all = modernMethods
	}
	if m := all[name]; m != nil {
		return m, nil
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found: %.100s; the methods are %s", name, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
}

// head begins every result of 2026-07-28 and later; before that it is empty.
type head struct {
	Type string    `json:"resultType,omitempty"`
	Meta *headMeta `json:"_meta,omitempty"`
}

type headMeta struct {
	Server       *wire.Implementation `json:"io.modelcontextprotocol/serverInfo,omitempty"`
	Subscription json.RawMessage      `json:"io.modelcontextprotocol/subscriptionId,omitempty"`
}

func (s *Server) info() *wire.Implementation {
	return &wire.Implementation{Name: "dragoman", Version: s.opts.Version}
}

// head returns the beginning of a result of the type.
func (s *Server) head(q *request, kind string) head {
	if !q.modern {
		return head{}
	}
	return head{Type: kind, Meta: &headMeta{Server: s.info()}}
}

// serverCapabilities are what the server says that it can do.
type serverCapabilities struct {
	Extensions map[string]struct{} `json:"extensions,omitempty"`
	Tools      struct {
		ListChanged bool `json:"listChanged"`
	} `json:"tools"`
}

// elicitingSession is the end of the session header of a client that can ask its user: the
// header is all that the server keeps of initialize, and the client keeps it.
const elicitingSession = "-elicits"

// initialize begins a session of a legacy client.
func (s *Server) initialize(q *request, a *reply) (any, *jsonrpc.Error) {
	var in struct {
		Version      string            `json:"protocolVersion"`
		Capabilities wire.Capabilities `json:"capabilities"`
	}
	if bad := q.read(&in); bad != nil {
		return nil, bad
	}
	session := s.newName()
	if in.Capabilities.Elicits() {
		session += elicitingSession
	}
	a.w.Header().Set(wire.HeaderSession, session)
	if in.Version == wire.Modern || !slices.Contains(wire.Versions, in.Version) {
		in.Version = wire.LatestLegacy
	}
	out := struct {
		Capabilities serverCapabilities   `json:"capabilities"`
		Instructions string               `json:"instructions"`
		Version      string               `json:"protocolVersion"`
		Server       *wire.Implementation `json:"serverInfo"`
	}{Instructions: instructions, Version: in.Version, Server: s.info()}
	out.Capabilities.Tools.ListChanged = true
	return out, nil
}

func (s *Server) ping(*request, *reply) (any, *jsonrpc.Error) { return struct{}{}, nil }

// cached says how long a client may keep a result: not at all, since tools and their
// permissions may change at any time.
type cached struct {
	TTL   int    `json:"ttlMs"`
	Scope string `json:"cacheScope"`
}

// discover says what the server can do, to a modern client.
func (s *Server) discover(q *request, _ *reply) (any, *jsonrpc.Error) {
	out := struct {
		head
		cached
		Versions     []string           `json:"supportedVersions"`
		Capabilities serverCapabilities `json:"capabilities"`
		Instructions string             `json:"instructions"`
	}{s.head(q, wire.ResultComplete), cached{Scope: "public"}, wire.Versions, serverCapabilities{Extensions: map[string]struct{}{wire.ExtensionTasks: {}}}, instructions}
	out.Capabilities.Tools.ListChanged = true
	return out, nil
}

// listedTool is a tool in a list.
type listedTool struct {
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Name        string          `json:"name"`
	Meta        listedMeta      `json:"_meta"`
}

// listedMeta says which hubs a tool came through, so that none offers it to itself.
type listedMeta struct {
	Hubs []string `json:"urn:dragoman:mcp:hubs:1"`
}

// listTools lists the tools that the caller may call, all at once.
func (s *Server) listTools(q *request, _ *reply) (any, *jsonrpc.Error) {
	out := struct {
		head
		cached
		Tools []listedTool `json:"tools"`
	}{s.head(q, wire.ResultComplete), cached{Scope: "private"}, []listedTool{}} // other callers may have other tools
	for _, t := range q.holder.session.Tools() {
		out.Tools = append(out.Tools, listedTool{t.Description, t.InputSchema, t.Name, listedMeta{append([]string{s.hub.ID()}, t.Hubs...)}})
	}
	return out, nil
}

// toolOf returns the tool that the caller calls by a name.
func (q *request) toolOf(name string) (tool.Definition, bool) {
	tools := q.holder.session.Tools()
	i := slices.IndexFunc(tools, func(t tool.Definition) bool { return t.Name == name })
	if i < 0 {
		return tool.Definition{}, false
	}
	return tools[i], true
}

// advice says which tool the caller may have meant: none of another pack, whose tools of like names may
// do what the caller does not want at all.
func (q *request) advice(name string) string {
	var names []string
	for _, t := range q.holder.session.Tools() {
		if packIn(t.Name) == packIn(name) {
			names = append(names, t.Name)
		}
	}
	if near := suggest.Nearest(name, names); near != "" {
		return fmt.Sprintf("did you mean %s? See tools/list", near)
	}
	return "see tools/list"
}

// packIn returns the name of the pack that the name of a tool begins with, and its dot; "" for none.
func packIn(tool string) string { return tool[:strings.IndexByte(tool, '.')+1] }

// acceptsStream reports whether the Accept header names event streams: some clients that
// accept anything read only JSON.
func acceptsStream(r *http.Request) bool {
	return strings.Contains(strings.ToLower(strings.Join(r.Header.Values("Accept"), ",")), "text/event-stream")
}
