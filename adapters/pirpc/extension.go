package pirpc

import (
	"bytes"
	_ "embed"
	"errors"
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

// extensionSource is an extension of pi that offers the tools of the hub (docs/extensions.md of pi).
//
//go:embed extension/dragoman.js
var extensionSource []byte

// extensionHub is the line of it that says where the hub is.
var extensionHub = []byte("const hub = { url: process.env.DRAGOMAN_MCP_URL, token: process.env.DRAGOMAN_MCP_TOKEN };")

// write writes the extension to a file that only this user can read, for it has the token. The
// caller removes it.
func (t Tools) write() (path string, remove func(), err error) {
	if !bytes.Contains(extensionSource, extensionHub) {
		return "", nil, errors.New("the extension of pi has no place for the address of the hub")
	}
	dir, err := os.MkdirTemp("", "dragoman-pi-*")
	if err != nil {
		return "", nil, fmt.Errorf("writing the extension of pi: %w", err)
	}
	remove = func() { _ = os.RemoveAll(dir) }
	hub := "const hub = " + object(map[string]string{"url": t.URL, "token": t.Token}) + ";"
	path = filepath.Join(dir, "dragoman.js")
	if err := os.WriteFile(path, bytes.Replace(extensionSource, extensionHub, []byte(hub), 1), 0o600); err != nil {
		remove()
		return "", nil, fmt.Errorf("writing the extension of pi: %w", err)
	}
	return path, remove, nil
}
