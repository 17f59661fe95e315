package mcp

import (
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// The methods.
const (
	methodInitialize = "initialize"
	methodPing       = "ping"
	methodDiscover   = "server/discover"
	methodListTools  = "tools/list"
	methodCallTool   = "tools/call"
	methodListen     = "subscriptions/listen"
	methodGetTask    = "tasks/get"
	methodUpdateTask = "tasks/update"
	methodCancelTask = "tasks/cancel"

	noteCancelled    = "notifications/cancelled"
	noteProgress     = "notifications/progress"
	noteToolsChanged = "notifications/tools/list_changed"
	noteSubscribed   = "notifications/subscriptions/acknowledged"
	noteTask         = "notifications/tasks"
	methodElicit     = "elicitation/create"
)

// method handles a request. It returns the result, which encodes as JSON, or the error in the
// request. Until then it may stream messages.
type method func(*Server, *request, *reply) (any, *jsonrpc.Error)

// legacyMethods and modernMethods are those of each era.
var (
	legacyMethods = map[string]method{
		methodInitialize: (*Server).initialize, methodPing: (*Server).ping, methodListTools: (*Server).listTools, methodCallTool: (*Server).callTool,
	}
	modernMethods = map[string]method{
		methodDiscover: (*Server).discover, methodListTools: (*Server).listTools, methodCallTool: (*Server).callTool, methodListen: (*Server).subscribe,
		methodGetTask: (*Server).getTask, methodUpdateTask: (*Server).updateTask, methodCancelTask: (*Server).cancelTask,
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
	Server       *implementation `json:"io.modelcontextprotocol/serverInfo,omitempty"`
	Subscription json.RawMessage `json:"io.modelcontextprotocol/subscriptionId,omitempty"`
}

type implementation struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

func (s *Server) info() *implementation {
	return &implementation{Name: "dragoman", Version: s.opts.Version}
}

// The types of results.
const (
	complete      = "complete"
	inputRequired = "input_required"
	taskCreated   = "task"
)

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

// initialize begins a session of a client of a version before sessionless.
func (s *Server) initialize(q *request, a *reply) (any, *jsonrpc.Error) {
	if !q.Params.Exists() {
		return nil, invalid(`invalid request: missing required "params"`)
	}
	var in struct {
		Version      string       `json:"protocolVersion"`
		Capabilities capabilities `json:"capabilities"`
	}
	if err := q.Params.Decode(&in); err != nil {
		return nil, badParams("params: %s", err)
	}
	session := rand.Text()
	if in.Capabilities.elicits() {
		session += elicitingSession
	}
	a.w.Header().Set(sessionHeader, session)
	if in.Version == sessionless || !slices.Contains(versions, in.Version) {
		in.Version = latestLegacy
	}
	out := struct {
		Capabilities serverCapabilities `json:"capabilities"`
		Instructions string             `json:"instructions"`
		Version      string             `json:"protocolVersion"`
		Server       *implementation    `json:"serverInfo"`
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

// discover says what the server can do, to a client of sessionless or later.
func (s *Server) discover(q *request, _ *reply) (any, *jsonrpc.Error) {
	out := struct {
		head
		cached
		Versions     []string           `json:"supportedVersions"`
		Capabilities serverCapabilities `json:"capabilities"`
		Instructions string             `json:"instructions"`
	}{s.head(q, complete), cached{Scope: "public"}, versions, serverCapabilities{Extensions: map[string]struct{}{tasksExtension: {}}}, instructions}
	out.Capabilities.Tools.ListChanged = true
	return out, nil
}

// listedTool is a tool in a list.
type listedTool struct {
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Name        string          `json:"name"`
}

// listTools lists the tools that the caller may call, all at once.
func (s *Server) listTools(q *request, _ *reply) (any, *jsonrpc.Error) {
	out := struct {
		head
		cached
		Tools []listedTool `json:"tools"`
	}{s.head(q, complete), cached{Scope: "private"}, []listedTool{}} // other callers may have other tools
	for _, t := range q.holder.session.Tools() {
		out.Tools = append(out.Tools, listedTool{t.Description, t.InputSchema, t.Name})
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

// acceptsStream reports whether the Accept header names event streams: some clients that
// accept anything read only JSON.
func acceptsStream(r *http.Request) bool {
	return strings.Contains(strings.ToLower(strings.Join(r.Header.Values("Accept"), ",")), "text/event-stream")
}
