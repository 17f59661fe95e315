package wire

// Dialect is the name of MCP among the dialects.
const Dialect = "mcp"

// Modern is the first version that is stateless: it has neither sessions nor initialize, and
// each request says its version and what its client can do. Earlier versions are legacy ones;
// LatestLegacy is the last of them. Versions sort as texts.
const (
	Modern       = "2026-07-28"
	LatestLegacy = "2025-11-25"
)

// Versions are those that the hub speaks, newest first.
var Versions = []string{Modern, LatestLegacy, "2025-06-18", "2025-03-26", "2024-11-05"}

// The methods of requests.
const (
	MethodInitialize = "initialize"
	MethodPing       = "ping"
	MethodDiscover   = "server/discover"
	MethodListTools  = "tools/list"
	MethodCallTool   = "tools/call"
	MethodListen     = "subscriptions/listen"
	MethodElicit     = "elicitation/create"
	MethodGetTask    = "tasks/get"
	MethodUpdateTask = "tasks/update"
	MethodCancelTask = "tasks/cancel"
)

// The methods of notifications.
const (
	NoteInitialized  = "notifications/initialized"
	NoteCancelled    = "notifications/cancelled"
	NoteProgress     = "notifications/progress"
	NoteToolsChanged = "notifications/tools/list_changed"
	NoteAcknowledged = "notifications/subscriptions/acknowledged"
	NoteTask         = "notifications/tasks"
	NoteLogged       = "notifications/message"
	NoteElicitDone   = "notifications/elicitation/complete"
)

// Keys of _meta, and of extensions.
const (
	MetaVersion      = "io.modelcontextprotocol/protocolVersion"
	MetaClient       = "io.modelcontextprotocol/clientInfo"
	MetaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	MetaServer       = "io.modelcontextprotocol/serverInfo"
	ExtensionTasks   = "io.modelcontextprotocol/tasks"
	// MetaHubs is our key of a tool in a list: the ids of the hubs that it came through, the
	// nearest first.
	MetaHubs = "urn:dragoman:mcp:hubs:1"
	// MetaHops is our key of a call that one hub makes at another: how many tasks stand above what
	// it asks (promise P10).
	MetaHops = "urn:dragoman:mcp:hops:1"
)

// The resultType of results of [Modern]. Without one a result is complete.
const (
	ResultComplete      = "complete"
	ResultInputRequired = "input_required"
	ResultTask          = "task"
)

// Codes of errors beyond those of JSON-RPC. -32020 to -32099 belong to MCP.
const (
	CodeHeaderMismatch     = -32020
	CodeMissingCapability  = -32021
	CodeUnsupportedVersion = -32022
	// CodeURLElicitation says that an address must be opened first (2025-11-25,
	// client/elicitation, "URL Elicitation Required Error").
	CodeURLElicitation = -32042
)

// Implementation names a program to its peer.
type Implementation struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// NotOfNames reports whether a rune is none of those that the name of a tool may have
// (2026-07-28, server/tools, "Tool Names").
func NotOfNames(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' && r != '.'
}
