package wire

import (
	"encoding/json"
	"errors"
)

// InitializeRequest is the first request of a client.
type InitializeRequest struct {
	ProtocolVersion    int                `json:"protocolVersion"`
	ClientCapabilities ClientCapabilities `json:"clientCapabilities"`
	ClientInfo         *Implementation    `json:"clientInfo,omitempty"`
	Meta               json.RawMessage    `json:"_meta,omitempty"`
}

func (r *InitializeRequest) check() error {
	if r.ProtocolVersion < 1 {
		return errors.New("protocolVersion: missing; send 1")
	}
	return nil
}

// InitializeResponse is its result.
type InitializeResponse struct {
	ProtocolVersion   int               `json:"protocolVersion"`
	AgentCapabilities AgentCapabilities `json:"agentCapabilities"`
	AuthMethods       []AuthMethod      `json:"authMethods"`
	AgentInfo         *Implementation   `json:"agentInfo,omitempty"`
	Meta              json.RawMessage   `json:"_meta,omitempty"`
}

// HubName is the name of our hub as an agent.
const HubName = "dragoman"

// Implementation names a program.
type Implementation struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
}

// ClientCapabilities are what an agent may ask of the client.
type ClientCapabilities struct {
	FS          FileSystem       `json:"fs"`
	Terminal    bool             `json:"terminal"`
	Elicitation *ElicitationKind `json:"elicitation,omitempty"`
	// Session, Auth and Meta are further capabilities, as they were sent.
	Session json.RawMessage `json:"session,omitempty"`
	Auth    json.RawMessage `json:"auth,omitempty"`
	Meta    json.RawMessage `json:"_meta,omitempty"`
}

// FileSystem says which methods fs/* a client has.
type FileSystem struct {
	ReadTextFile  bool `json:"readTextFile"`
	WriteTextFile bool `json:"writeTextFile"`
}

// ElicitationKind says which modes of elicitation a client has. An empty object declares none.
type ElicitationKind struct {
	Form *Empty `json:"form,omitempty"`
	URL  *Empty `json:"url,omitempty"`
}

// Empty is an object whose presence declares a capability.
type Empty struct{}

// AgentCapabilities are what a client may ask of the agent.
type AgentCapabilities struct {
	LoadSession         bool                `json:"loadSession"`
	PromptCapabilities  PromptCapabilities  `json:"promptCapabilities"`
	MCPCapabilities     MCPCapabilities     `json:"mcpCapabilities"`
	SessionCapabilities SessionCapabilities `json:"sessionCapabilities"`
	Auth                json.RawMessage     `json:"auth,omitempty"`
	Meta                json.RawMessage     `json:"_meta,omitempty"`
}

// PromptCapabilities are the kinds of content that a prompt may have beside text and links.
type PromptCapabilities struct {
	Image           bool `json:"image"`
	Audio           bool `json:"audio"`
	EmbeddedContext bool `json:"embeddedContext"`
}

// MCPCapabilities are the MCP servers that an agent can use beside those over stdio.
type MCPCapabilities struct {
	HTTP bool `json:"http"`
	SSE  bool `json:"sse"`
}

// SessionCapabilities are the optional methods session/*; nil for one that is missing.
type SessionCapabilities struct {
	List                  *Empty `json:"list,omitempty"`
	Delete                *Empty `json:"delete,omitempty"`
	Resume                *Empty `json:"resume,omitempty"`
	Close                 *Empty `json:"close,omitempty"`
	AdditionalDirectories *Empty `json:"additionalDirectories,omitempty"`
}

// AuthMethod is a way to authenticate. Its type is "terminal" for one that a person does in a
// terminal, with the program's arguments and variables, else "" or "agent".
type AuthMethod struct {
	ID          string            `json:"id"`
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Type        string            `json:"type,omitempty"`
	Args        []string          `json:"args,omitempty"`
	Env         map[string]string `json:"env,omitempty"`
	Meta        json.RawMessage   `json:"_meta,omitempty"`
}

// AuthenticateRequest chooses one. Its result is an empty object.
type AuthenticateRequest struct {
	MethodID string          `json:"methodId"`
	Meta     json.RawMessage `json:"_meta,omitempty"`
}

func (r *AuthenticateRequest) check() error { return need("methodId", r.MethodID) }

// need returns an error for a member that is missing or empty.
func need(name, value string) error {
	if value == "" {
		return errors.New(name + ": missing; send a string")
	}
	return nil
}
