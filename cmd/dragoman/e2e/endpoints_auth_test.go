package e2e

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/dragoman-hub/dragoman/adapters/auth"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
	gatewaywire "github.com/dragoman-hub/dragoman/proto/parallax/gateway"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

// testTokens are the tokens that each endpoint is tried with, and whether they are valid.
var testTokens = map[string]bool{"": false, "wrong": false, "alice": true, "past": false}

// writeTestTokens writes a tokens file in which the token alice is valid and past has expired.
func writeTestTokens(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	text := "tokens:\n"
	for token, expires := range map[string]string{"alice": "2100-01-01T00:00:00Z", "past": "2001-01-01T00:00:00Z"} {
		hash := auth.HashOf(token)
		text += fmt.Sprintf("- {principal: alice, sha256: %s, expires: %s}\n", hex.EncodeToString(hash[:]), expires)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEveryHTTPEndpointRequiresAToken(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) { c.Auth.Tokens = writeTestTokens(t) })
	hub, pi := h.url(), "http://"+h.service.Addresses().Pi
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for _, target := range []struct {
		method, url, body string
		upgrade, open     bool
	}{
		{method: http.MethodGet, url: hub + "/v1/agents"},
		{method: http.MethodGet, url: hub + "/v1/openapi.json"},
		{method: http.MethodGet, url: hub + "/v1/events", body: ""},
		{method: http.MethodPost, url: hub + "/v1/tasks", body: `{}`},
		{method: http.MethodGet, url: hub + "/ws/agent", upgrade: true},
		{method: http.MethodGet, url: hub + "/ws/acp", upgrade: true},
		{method: http.MethodGet, url: hub + "/ws/editor?agent=x", upgrade: true},
		{method: http.MethodGet, url: hub + "/ws/pi", upgrade: true},
		{method: http.MethodPost, url: hub + "/acp", body: `{"id":"p","kind":"ping"}`},
		{method: http.MethodGet, url: hub + "/acp?agent_id=a"},
		{method: http.MethodPost, url: hub + "/mcp", body: list},
		{method: http.MethodPost, url: hub + "/mcp/", body: list},
		{method: http.MethodGet, url: hub + "/mcp"},
		{method: http.MethodGet, url: hub + "/metrics"},
		{method: http.MethodGet, url: hub + "/", open: true}, // the page of the console, which asks for a token
		{method: http.MethodGet, url: hub + "/console/app.js", open: true},
		{method: http.MethodGet, url: hub + "/console/../v1/agents"},
		{method: http.MethodGet, url: hub + "/mcp/../v1/agents"},
		{method: http.MethodGet, url: hub + "/healthz/../v1/agents"},
		{method: http.MethodGet, url: hub + "/mcp%2f..%2fv1/agents"},
		{method: http.MethodGet, url: pi + "/", upgrade: true},
		{method: http.MethodGet, url: pi + "/any/path", upgrade: true},
		{method: http.MethodGet, url: pi + "/mcp", upgrade: true},
		{method: http.MethodGet, url: pi + "/mcp/x", upgrade: true},
		{method: http.MethodGet, url: pi + "/healthz", upgrade: true},
		{method: http.MethodGet, url: hub + "/healthz", open: true},
		{method: http.MethodGet, url: hub + "/readyz", open: true},
		{method: http.MethodGet, url: hub + "/health", open: true},
		{method: http.MethodGet, url: hub + "/health/ready", open: true},
		{method: http.MethodGet, url: hub + "/.well-known/oauth-protected-resource/mcp", open: true},
		{method: http.MethodGet, url: hub + "/.well-known/oauth-protected-resource", open: true},
		{method: http.MethodPost, url: hub + "/register", body: `{}`, open: true},
		{method: http.MethodGet, url: hub + "/.well-known/oauth-protected-resource/../../v1/agents"},
		{method: http.MethodGet, url: hub + "/health/../v1/agents"},
	} {
		for token, good := range testTokens {
			ctx, cancel := context.WithCancel(t.Context())
			r, err := http.NewRequestWithContext(ctx, target.method, target.url, strings.NewReader(target.body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			if target.upgrade {
				r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}}
			}
			if token != "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			resp, err := http.DefaultTransport.RoundTrip(r) // it follows no redirect and cleans no path
			if err != nil {
				t.Fatal(err)
			}
			refused := resp.StatusCode == http.StatusUnauthorized
			want := !good && !target.open
			if detour := strings.Contains(target.url, ".."); detour && resp.StatusCode == http.StatusOK || !detour && refused != want {
				t.Errorf("%s %s with the token %q: got %d, want refused %v", target.method, target.url, token, resp.StatusCode, want)
			}
			if target.upgrade && !refused && resp.StatusCode != http.StatusSwitchingProtocols {
				t.Errorf("%s with the token %q: got %d, want 101", target.url, token, resp.StatusCode)
			}
			cancel()
			_ = resp.Body.Close()
		}
	}
}

func TestEveryGRPCMethodRequiresAToken(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) { c.Auth.Tokens = writeTestTokens(t) })
	cc, err := grpcserver.Dial(t.Context(), h.service.Addresses().GRPC, grpcserver.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	first := func(stream grpc.ClientStream, err error) error {
		if err != nil {
			return err
		}
		if err := stream.CloseSend(); err != nil {
			return err
		}
		return stream.RecvMsg(new(wire.ServerMessage))
	}
	clients := wire.NewClientServiceClient(cc)
	for name, target := range map[string]struct {
		call func(ctx context.Context) error
		open bool
	}{
		"agents":  {call: func(ctx context.Context) error { return first(wire.NewCovenControlClient(cc).AgentStream(ctx)) }},
		"clients": {call: func(ctx context.Context) error { _, err := clients.GetMe(ctx, nil); return err }},
		"agent list": {call: func(ctx context.Context) error {
			_, err := clients.ListAgents(ctx, &wire.ListAgentsRequest{})
			return err
		}},
		"events":  {call: func(ctx context.Context) error { return first(clients.StreamEvents(ctx, &wire.StreamEventsRequest{})) }},
		"gateway": {call: func(ctx context.Context) error { return first(gatewaywire.NewAgentGatewayClient(cc).Connect(ctx)) }},
		"packs": {call: func(ctx context.Context) error {
			return first(wire.NewPackServiceClient(cc).Register(ctx, &wire.PackManifest{}))
		}},
		"results": {call: func(ctx context.Context) error {
			_, err := wire.NewPackServiceClient(cc).ToolResult(ctx, &wire.ExecuteToolResponse{})
			return err
		}},
		"reflection": {call: func(ctx context.Context) error {
			stream, err := reflectionpb.NewServerReflectionClient(cc).ServerReflectionInfo(ctx)
			if err != nil {
				return err
			}
			if err := stream.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}); err != nil && err != io.EOF {
				return err
			}
			_, err = stream.Recv()
			return err
		}},
		"health": {open: true, call: func(ctx context.Context) error {
			_, err := healthpb.NewHealthClient(cc).Check(ctx, &healthpb.HealthCheckRequest{})
			return err
		}},
	} {
		for token, good := range testTokens {
			ctx, cancel := context.WithCancel(t.Context())
			if token != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
			}
			err := target.call(ctx)
			cancel()
			if refused, want := status.Code(err) == codes.Unauthenticated, !good && !target.open; refused != want {
				t.Errorf("%s with the token %q: got %v, want refused %v", name, token, err, want)
			}
		}
	}
}
