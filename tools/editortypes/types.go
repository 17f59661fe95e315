package main

// typ is a type that is generated, for one definition of the schema or for several of which a value is
// any one.
type typ struct {
	name string
	of   []string // the definitions; nil for the one of the same name
}

func (t typ) defs() []string {
	if t.of == nil {
		return []string{t.name}
	}
	return t.of
}

// types are those that are used. What a member refers to that is not among them stays as it was sent.
var types = []typ{
	{name: "InitializeRequest"},
	{name: "InitializeResponse"},
	{name: "Implementation"},
	{name: "ClientCapabilities"},
	{"FileSystem", []string{"FileSystemCapabilities"}},
	{"ElicitationKind", []string{"ElicitationCapabilities"}},
	{"ClientSession", []string{"ClientSessionCapabilities"}},
	{"ClientOptions", []string{"SessionConfigOptionsCapabilities"}},
	{name: "AgentCapabilities"},
	{name: "PromptCapabilities"},
	{"MCPCapabilities", []string{"McpCapabilities"}},
	{name: "SessionCapabilities"},
	{name: "AuthMethod"},
	{name: "AuthenticateRequest"},
	{name: "NewSessionRequest"},
	{"MCPServer", []string{"McpServer"}},
	{"Variable", []string{"EnvVariable", "HttpHeader"}},
	{"SessionRequest", []string{"CloseSessionRequest", "DeleteSessionRequest", "CancelNotification"}},
	{name: "ListSessionsRequest"},
	{name: "ListSessionsResponse"},
	{name: "SessionInfo"},
	{"Modes", []string{"SessionModeState"}},
	{"Mode", []string{"SessionMode"}},
	{"ConfigOption", []string{"SessionConfigOption"}},
	{"SetMode", []string{"SetSessionModeRequest"}},
	{"SetConfigOption", []string{"SetSessionConfigOptionRequest"}},
	{name: "PromptRequest"},
	{name: "PromptResponse"},
	{"Block", []string{"ContentBlock"}},
	{"Resource", []string{"EmbeddedResourceResource"}},
	{"ToolCall", []string{"ToolCall", "ToolCallUpdate"}},
	{"ToolContent", []string{"ToolCallContent"}},
	{"Location", []string{"ToolCallLocation"}},
	{name: "Notice"},
	{name: "CompactionUpdate"},
	{"PermissionRequest", []string{"RequestPermissionRequest"}},
	{name: "PermissionOption"},
	{"PermissionResponse", []string{"RequestPermissionResponse"}},
	{"PermissionOutcome", []string{"RequestPermissionOutcome"}},
	{"ElicitationRequest", []string{"CreateElicitationRequest"}},
	{"ElicitationResponse", []string{"CreateElicitationResponse"}},
	{"ElicitationComplete", []string{"CompleteElicitationNotification"}},
	{"CancelRequest", []string{"CancelRequestNotification"}},
}

// beyond has members that peers send and the stable schema does not have, in the words of Go.
var beyond = map[string]string{
	"SessionCapabilities": "Fork *Empty `json:\"fork,omitempty\"`",
	"PromptResponse":      "Usage *Usage `json:\"usage,omitempty\"`",
}

// exceptions are the types of members that do not follow from the schema: data, which it calls a text,
// and texts of which an empty one says something else than none.
var exceptions = map[string]string{
	"ImageContent.data":               "[]byte",
	"AudioContent.data":               "[]byte",
	"BlobResourceContents.blob":       "[]byte",
	"TextResourceContents.text":       "*string",
	"Diff.oldText":                    "*string",
	"Diff.newText":                    "*string",
	"Content.content":                 "*Block",
	"EmbeddedResource.resource":       "*Resource",
	"ElicitationAcceptAction.content": raw,
}

// enum is constants that are generated: the values of a definition, or the words that tell its variants
// apart.
type enum struct{ prefix, of string }

var enums = []enum{
	{"Block", "ContentBlock"},
	{"Tool", "ToolKind"},
	{"Tool", "ToolCallStatus"},
	{"ToolContent", "ToolCallContent"},
	{"Stop", "StopReason"},
	{"Update", "SessionUpdate"},
	{"Compaction", "CompactionStatus"},
	{"Option", "SessionConfigOption"},
	{"", "PermissionOptionKind"},
	{"Outcome", "RequestPermissionOutcome"},
	{"Elicit", "CreateElicitationRequest"},
	{"Elicit", "CreateElicitationResponse"},
}
