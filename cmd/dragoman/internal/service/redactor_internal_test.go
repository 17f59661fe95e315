package service

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/mcp"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/credentials"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// The hub has only the hashes of its tokens, and those for MCP come with each connection.
func TestTokensThatTheProgramMakesAreRedactedWithoutASetting(t *testing.T) {
	r, err := redactorOf(config.Default(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	h := coretest.NewHub(t, hub.Options{})
	server := mcp.New(h, mcp.Options{})
	defer server.Close()
	s := h.Connect(hub.Identity{Principal: core.Principal{ID: "a"}})
	defer s.Close(nil)
	token, revoke := server.Issue(s)
	defer revoke()
	for _, token := range []string{token, credentials.NewToken()} {
		if got, want := r.Text("POST http://hub/mcp/"+token+"?x"), "POST http://hub/mcp/[redacted]?x"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if text := "see dragoman_hub and " + strings.ToLower(token); r.Text(text) != text {
		t.Errorf("got %q, want it as it was", r.Text(text))
	}
}
