package wire

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

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

// MethodSessionFork begins a session with what was said in another one. It is in no stable schema; its params
// are those of session/load, its result that of session/new.
const MethodSessionFork = "session/fork"

// SessionState is the result of session/new, session/load, session/resume and session/fork, as the hub
// answers them: an agent makes an [Offer] in it.
type SessionState struct {
	// SessionID is that of session/new and session/fork alone.
	SessionID     string         `json:"sessionId,omitempty"`
	Modes         *Modes         `json:"modes,omitempty"`
	ConfigOptions []ConfigOption `json:"configOptions,omitempty"`
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

func (r *SessionRequest) check() error { return need("sessionId", r.SessionID) }
