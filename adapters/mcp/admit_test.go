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

func TestATokenOfTheHubIsNoGoodHereOnceItHasExpired(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	leave := g.door.Admit(sha256.Sum256([]byte("hers")), core.Principal{ID: "ann", Authenticated: true, Until: time.Now().Add(200 * time.Millisecond)})
	defer leave()
	resp, err := g.send(t.Context(), http.MethodGet, "", "", "Authorization: Bearer hers", "Accept: text/event-stream")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("before: got %d, want the stream of news", resp.StatusCode)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil { // it ends with the token
		t.Errorf("the stream: got %v, want it ended in good order", err)
	}
	g.post("", calling("1", "agents_list", `{}`), "Authorization: Bearer hers").fails(http.StatusBadRequest, -32600, "expired")
	g.post("/hers", calling("1", "agents_list", `{}`)).fails(http.StatusBadRequest, -32600, "expired")
}
