package pirpc

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
)

// Tools is the hub's own MCP endpoint as pi reaches it.
type Tools struct {
	// URL is the address of the endpoint, such as http://127.0.0.1:8080/mcp; "" offers no tools.
	URL string
	// Token is the token of the agent there; "" for an open hub.
	Token string
}

// The variables that tell the extension where the tools of the hub are. It removes them, so that
// commands that pi runs do not get them.
const (
	variableURL   = "DRAGOMAN_MCP_URL"
	variableToken = "DRAGOMAN_MCP_TOKEN"
)

// env returns the variables of a process. The token is in no file: one would stay if the hub is
// killed.
func (t Tools) env() []string {
	return []string{variableURL + "=" + t.URL, variableToken + "=" + t.Token}
}

// extension is an extension of pi that offers the tools of the hub (docs/extensions.md of pi).
//
//go:embed extension/dragoman.js
var extension []byte

// writeExtension writes the extension to a directory and returns its path. Without a directory it
// makes one, which remove removes. Processes may read the file meanwhile.
func writeExtension(dir string) (path string, remove func(), err error) {
	remove = func() {}
	if dir == "" {
		if dir, err = os.MkdirTemp("", "dragoman-pi-*"); err != nil {
			return "", nil, fmt.Errorf("the extension of pi: %w", err)
		}
		remove = func() { _ = os.RemoveAll(dir) }
	}
	path = filepath.Join(dir, "dragoman.js")
	if err := replaceFile(path, extension); err != nil {
		remove()
		return "", nil, fmt.Errorf("the extension of pi: %w", err)
	}
	return path, remove, nil
}

// replaceFile writes a file as a whole, unless it has the content already.
func replaceFile(path string, content []byte) error {
	if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, content) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	next := path + ".new"
	if err := os.WriteFile(next, content, 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}
