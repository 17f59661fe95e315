package wire

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// NewSessionRequest is the params of session/new.
type NewSessionRequest struct {
	// CWD is absolute.
	CWD                   string          `json:"cwd"`
	AdditionalDirectories []string        `json:"additionalDirectories,omitempty"`
	MCPServers            []MCPServer     `json:"mcpServers"`
	Meta                  json.RawMessage `json:"_meta,omitempty"`
}

func (r *NewSessionRequest) check() error { return checkPlace(r.CWD, r.MCPServers) }

// OpenSessionRequest is the params of session/load and session/resume.
type OpenSessionRequest struct {
	SessionID string `json:"sessionId"`
	NewSessionRequest
}

func (r *OpenSessionRequest) check() error {
	return cmp.Or(need("sessionId", r.SessionID), checkPlace(r.CWD, r.MCPServers))
}

func checkPlace(cwd string, servers []MCPServer) error {
	if cwd == "" || !filepath.IsAbs(cwd) && !windowsPath(cwd) {
		return fmt.Errorf("cwd: want an absolute path, got %q", cwd)
	}
	for i, s := range servers {
		if err := s.check(); err != nil {
			return fmt.Errorf("mcpServers[%d].%w", i, err)
		}
	}
	return nil
}

// windowsPath reports whether a path begins with a drive or a share: the editor may run on
// another system than the hub.
func windowsPath(path string) bool {
	return len(path) > 2 && (path[1] == ':' && (path[2] == '\\' || path[2] == '/') || path[:2] == `\\`)
}

// SessionState is the result of session/new, session/load and session/resume, in which an agent
// also makes its [Offer].
type SessionState struct {
	// SessionID is that of session/new alone.
	SessionID string `json:"sessionId,omitempty"`
}

// MCPServer is an MCP server that the agent is to use: over stdio if it has a command, else
// over HTTP, or SSE by its type.
type MCPServer struct {
	Type    string     `json:"type"`
	Name    string     `json:"name"`
	Command string     `json:"command"`
	Args    []string   `json:"args"`
	Env     []Variable `json:"env"`
	URL     string     `json:"url"`
	Headers []Variable `json:"headers"`
}

// Variable is a variable of the environment or a header.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// MarshalJSON writes the members of the kind of server, all of which are required.
func (s MCPServer) MarshalJSON() ([]byte, error) {
	if s.Command != "" {
		return strictjson.Encode(struct {
			Name    string     `json:"name"`
			Command string     `json:"command"`
			Args    []string   `json:"args"`
			Env     []Variable `json:"env"`
		}{s.Name, s.Command, append([]string{}, s.Args...), append([]Variable{}, s.Env...)}), nil
	}
	return strictjson.Encode(struct {
		Type    string     `json:"type"`
		Name    string     `json:"name"`
		URL     string     `json:"url"`
		Headers []Variable `json:"headers"`
	}{cmp.Or(s.Type, "http"), s.Name, s.URL, append([]Variable{}, s.Headers...)}), nil
}

func (s MCPServer) check() error {
	switch {
	case s.Name == "":
		return need("name", s.Name)
	case s.Command == "" && s.URL == "":
		return errors.New("command: missing; send a command, or a url with the type http")
	}
	return nil
}

// SessionRequest is the params of session/close, whose result is an empty object, and of
// session/cancel.
type SessionRequest struct {
	SessionID string          `json:"sessionId"`
	Meta      json.RawMessage `json:"_meta,omitempty"`
}

func (r *SessionRequest) check() error { return need("sessionId", r.SessionID) }

// ListSessionsRequest is the params of session/list.
type ListSessionsRequest struct {
	CWD    string          `json:"cwd,omitempty"`
	Cursor string          `json:"cursor,omitempty"`
	Meta   json.RawMessage `json:"_meta,omitempty"`
}

// ListSessionsResponse is its result.
type ListSessionsResponse struct {
	Sessions   []SessionInfo `json:"sessions"`
	NextCursor string        `json:"nextCursor,omitempty"`
}

// SessionInfo describes a session.
type SessionInfo struct {
	SessionID string `json:"sessionId"`
	CWD       string `json:"cwd"`
	Title     string `json:"title,omitempty"`
	// UpdatedAt is in the format of RFC 3339.
	UpdatedAt string `json:"updatedAt,omitempty"`
}
