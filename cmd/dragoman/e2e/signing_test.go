package e2e

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	parallaxclient "github.com/dragoman-hub/dragoman/adapters/parallax/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
)

func TestASigningAgentIsAcceptedByAHubThatRequiresSignatures(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets.yaml")
	if err := os.WriteFile(path, []byte("a: 0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := newTestHub(t, func(c *config.Config) { c.Parallax.Secrets, c.Parallax.RequireSignatures = path, true })
	work := func(ctx context.Context, id core.AgentID, secret string) error {
		conn, err := client.DialWebSocket(ctx, client.Hub{URL: h.url()}, service.ParallaxPath, http.Header{"X-Agent-Id": {string(id)}}, client.MaxParallaxBytes)
		if err != nil {
			return err
		}
		return parallaxclient.Work(ctx, conn, core.Card{ID: id}, shout, parallaxclient.WorkOptions{Secret: []byte(secret)})
	}
	for _, c := range []struct {
		id     core.AgentID
		secret string
	}{{"a", ""}, {"a", "another secret"}, {"b", "0123456789abcdef"}} {
		var f *core.Fault
		if err := work(t.Context(), c.id, c.secret); !errors.As(err, &f) || f.Code != core.CodeUnauthenticated {
			t.Errorf("%s with %q: got %v, want it refused", c.id, c.secret, err)
		}
	}
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- work(ctx, "a", "0123456789abcdef") }()
	h.await(t, "joined a")
	x := connectREST(t, h)
	defer x.leave()
	if got := x.open(query{to: "a", content: "hello"}, true).wait(t); got.Text != "HELLO" {
		t.Errorf("got %+v, want HELLO", got)
	}
	leave()
	<-ended
}
