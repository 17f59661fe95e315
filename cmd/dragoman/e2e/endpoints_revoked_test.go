package e2e

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc/metadata"

	"github.com/dragoman-hub/dragoman/adapters/auth"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	corehub "github.com/dragoman-hub/dragoman/core/hub"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
	gatewaywire "github.com/dragoman-hub/dragoman/proto/parallax/gateway"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

// openConnections are connections to everything of a hub that stays open, each by a function that
// reads from it. The first message has been read.
type openConnections struct {
	s     *testHub
	token string
	reads map[string]func() error
}

// openAll opens all of them with the token of an operator.
func openAll(t *testing.T, h *testHub, token string) (*openConnections, error) {
	t.Helper()
	d := &openConnections{s: h, token: token, reads: map[string]func() error{}}
	for _, open := range []func(*testing.T) error{d.webSockets, d.streamsOfHTTP, d.streamsOfGRPC} {
		if err := open(t); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (d *openConnections) webSockets(t *testing.T) error {
	hub := "ws://" + d.s.service.Addresses().HTTP
	for name, at := range map[string]string{
		"Parallax": hub + "/ws/agent", "ACP": hub + "/ws/acp", "pi": "ws://" + d.s.service.Addresses().Pi + "/", "pi beside others": hub + "/ws/pi",
		"editor": hub + "/ws/editor?agent=busy",
	} {
		conn, _, err := websocket.Dial(t.Context(), at, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + d.token}, "X-Agent-Id": {"b-" + name}}})
		if err != nil {
			return err
		}
		t.Cleanup(func() { _ = conn.CloseNow() })
		first := map[string]string{
			"Parallax": `{"type":"register","id":"r","payload":{"capabilities":[]}}`,
			"editor":   `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`,
		}[name]
		if first != "" {
			if err := conn.Write(t.Context(), websocket.MessageText, []byte(first)); err != nil {
				return err
			}
		}
		read := func() error { _, _, err := conn.Read(t.Context()); return err }
		if err := read(); err != nil {
			return err
		}
		d.reads[name] = read
	}
	return nil
}

// streamsOfHTTP opens what answers with a stream. All but MCP and ACP follow a running task.
func (d *openConnections) streamsOfHTTP(t *testing.T) error {
	busy := d.s.service.Hub().Connect(corehub.Identity{Principal: core.Principal{ID: "host"}})
	t.Cleanup(func() { busy.Close(nil) })
	if err := busy.Join(core.Card{ID: "busy", MaxConcurrent: 2}, corehub.JoinOptions{}); err != nil {
		return err
	}
	hub := d.s.url()
	const events = "text/event-stream"
	call := func(name, method, path, body, accept string) error {
		r, err := http.NewRequestWithContext(t.Context(), method, hub+path, strings.NewReader(body))
		if err != nil {
			return err
		}
		r.Header = http.Header{"Authorization": {"Bearer " + d.token}, "Accept": {accept}, "Content-Type": {"application/json"}}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: got %s", name, resp.Status)
		}
		buf := make([]byte, 1<<10)
		d.reads[name] = func() error { _, err := resp.Body.Read(buf); return err }
		return nil
	}
	const ask = `{"to":"busy","thread":"b","content":"hello"}`
	if err := call("POST /v1/tasks", http.MethodPost, "/v1/tasks", ask, events); err != nil {
		return err
	}
	code, out, _ := run(t, "delegate", "--json", "busy", "hello", "--hub", hub, "--token", d.token)
	var task struct{ ID string }
	if err := json.Unmarshal([]byte(out), &task); err != nil || code != command.ExitDone {
		return fmt.Errorf("got %q and %d, want a task", out, code)
	}
	for name, at := range map[string]struct{ path, accept string }{
		"GET /acp":                       {"/acp?agent_id=b-http", events},
		"GET /mcp":                       {"/mcp", events},
		"GET /v1/events":                 {"/v1/events", events},
		"GET /v1/tasks/ID/events":        {"/v1/tasks/" + task.ID + "/events", events},
		"GET /v1/tasks/ID/events, lines": {"/v1/tasks/" + task.ID + "/events", "application/x-ndjson"},
	} {
		if err := call(name, http.MethodGet, at.path, "", at.accept); err != nil {
			return err
		}
	}
	return nil
}

func (d *openConnections) streamsOfGRPC(t *testing.T) error {
	cc, err := grpcserver.Dial(t.Context(), d.s.service.Addresses().GRPC, grpcserver.DialOptions{})
	if err != nil {
		return err
	}
	t.Cleanup(func() { _ = cc.Close() })
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+d.token)
	agent, err := wire.NewCovenControlClient(cc).AgentStream(ctx)
	if err == nil {
		err = agent.Send(&wire.AgentMessage{Payload: &wire.AgentMessage_Register{Register: &wire.RegisterAgent{AgentId: "b-coven", Name: "b"}}})
	}
	if err == nil {
		_, err = agent.Recv() // Welcome
	}
	if err != nil {
		return err
	}
	d.reads["Coven"] = func() error { _, err := agent.Recv(); return err }
	edge, err := gatewaywire.NewAgentGatewayClient(cc).Connect(ctx)
	if err == nil {
		err = edge.Send(&gatewaywire.AgentToControlPlane{Payload: &gatewaywire.AgentToControlPlane_Hello{Hello: &gatewaywire.AgentHello{AgentId: "b-gateway"}}})
	}
	if err == nil {
		_, err = edge.Recv() // ServerAck
	}
	if err != nil {
		return err
	}
	d.reads["gateway"] = func() error { _, err := edge.Recv(); return err }
	pack, err := wire.NewPackServiceClient(cc).Register(ctx, &wire.PackManifest{PackId: "p", Version: "1"})
	if err == nil {
		_, err = pack.Header()
	}
	if err != nil {
		return err
	}
	d.reads["pack"] = func() error { _, err := pack.Recv(); return err }
	events, err := wire.NewClientServiceClient(cc).StreamEvents(ctx, &wire.StreamEventsRequest{ConversationKey: "b"})
	if err == nil {
		_, err = events.Header()
	}
	if err != nil {
		return err
	}
	d.reads["events of a client"] = func() error { _, err := events.Recv(); return err }
	return nil
}

// wantAllClosed waits until every connection has been closed.
func (d *openConnections) wantAllClosed(t *testing.T) {
	t.Helper()
	ended := map[string]chan error{}
	for name, read := range d.reads {
		done := make(chan error, 1)
		ended[name] = done
		go func() {
			for {
				if err := read(); err != nil {
					done <- err
					return
				}
			}
		}()
	}
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	for name, done := range ended {
		select {
		case err := <-done:
			t.Logf("%s: %v", name, err)
			delete(ended, name)
		case <-ctx.Done():
		}
	}
	for name, done := range ended {
		select {
		case err := <-done:
			t.Logf("%s: %v", name, err)
		default:
			t.Errorf("%s: got it still connected, want it ended with its token", name)
		}
	}
}

func TestARevokedTokenEndsAllItsConnections(t *testing.T) {
	path := tokensFile(t, "root", "bob")
	h := newTestHub(t, func(c *config.Config) { c.Auth.Tokens = path })
	conns, err := openAll(t, h, "root")
	if err != nil {
		t.Fatal(err)
	}
	writeTokens(t, path, "bob")
	if err := h.service.Reload(h.config); err != nil {
		t.Fatal(err)
	}
	conns.wantAllClosed(t)
}

func TestAnExpiredTokenEndsAllItsConnections(t *testing.T) {
	for life := time.Second; ; life *= 2 { // long enough to open them all
		path := filepath.Join(t.TempDir(), "tokens.yaml")
		hash := auth.HashOf("root")
		text := fmt.Sprintf("tokens: [{principal: root, operator: true, agents: [\"*\"], sha256: %s, expires: %s}]", hex.EncodeToString(hash[:]), time.Now().Add(life).Format(time.RFC3339Nano))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		conns, err := openAll(t, newTestHub(t, func(c *config.Config) { c.Auth.Tokens = path }), "root")
		if err == nil {
			conns.wantAllClosed(t)
			return
		}
		if life > watchdog {
			t.Fatal(err)
		}
	}
}
