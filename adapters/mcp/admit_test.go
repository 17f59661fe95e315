package mcp_test

import (
	"crypto/sha256"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/mcp"
	"github.com/dragoman-hub/dragoman/core"
)

func TestAnExpiredTokenOfTheHubIsRefused(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	leave := g.server.Admit(sha256.Sum256([]byte("secret")), core.Principal{ID: "ann", Authenticated: true, Until: time.Now().Add(200 * time.Millisecond)})
	defer leave()
	resp, err := g.send(t.Context(), http.MethodGet, "", "", "Authorization: Bearer secret", "Accept: text/event-stream")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("before it expires: got %d, want the event stream", resp.StatusCode)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil { // it ends with the token
		t.Errorf("the stream: got %v, want a clean end", err)
	}
	g.post("", toolCall("1", "agents_list", `{}`), "Authorization: Bearer secret").fails(http.StatusBadRequest, -32600, "expired")
	g.post("/secret", toolCall("1", "agents_list", `{}`)).fails(http.StatusBadRequest, -32600, "expired")
}
