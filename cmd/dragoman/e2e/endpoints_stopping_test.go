package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

func TestAStoppingHubRefusesConnections(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pi")
	h := newTestHub(t, func(c *config.Config) { c.PiSocket = path })
	h.startAgent(t, coven.Name, "actor", 8)
	key := h.key()
	asker := h.service.Hub().Connect(hub.Identity{Principal: core.Principal{ID: "asker"}})
	defer asker.Close(nil)
	if _, err := asker.Open(core.Request{Intent: core.IntentAsk, To: core.ToAgent("actor"), Content: "hang " + key}, hub.OpenOptions{Unwatched: true}); err != nil {
		t.Fatal(err)
	}
	h.await(t, key+" begun")
	stopped := make(chan error, 1)
	go func() { stopped <- h.service.Stop(context.Background(), "maintenance") }()
	defer func() {
		h.signal(key+" released", nil)
		if err := <-stopped; err != nil {
			t.Errorf("stopping: got %v, want no error", err)
		}
	}()
	if b, err := asker.Next(t.Context()); err != nil || b.Draining == "" {
		t.Fatalf("got %+v and %v, want the notice that the hub stops", b, err)
	}
	for _, f := range endpoints(h, h.key()) {
		got, want := f.do(t, "127.0.0.1", ""), http.StatusServiceUnavailable
		if f.upgrade && got != want {
			t.Errorf("%s%s: got %d, want %d", f.addr, f.path, got, want)
		}
		if f.path == "/v1/agents" && got != http.StatusOK {
			t.Errorf("%s: got %d, want it answered until the end", f.path, got)
		}
	}
	for path, want := range map[string]string{service.ReadyPath: "503 stopping\n", "/health/ready": "503 stopping", "/health": "200 OK"} {
		resp, err := http.Get(h.url() + path) //nolint:noctx // it answers at once
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if got := fmt.Sprint(resp.StatusCode, " ", string(body)); err != nil || got != want {
			t.Errorf("%s: got %q and %v, want %q", path, got, err, want)
		}
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var received []string
	for lines := json.NewDecoder(conn); ; {
		var line struct{ Type string }
		if lines.Decode(&line) != nil {
			break
		}
		received = append(received, line.Type)
	}
	if want := []string{"server_ready", "startup_recovery_summary", "server_shutdown"}; !slices.Equal(received, want) {
		t.Errorf("over the Unix socket: got %q, want %q and the end", received, want)
	}
}
