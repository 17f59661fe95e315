package service_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	covenpb "github.com/dragoman-hub/dragoman/proto/coven"
	"github.com/dragoman-hub/dragoman/proto/parallax/gateway"
	"github.com/dragoman-hub/dragoman/proto/parallax/registry"
)

// A door is a way to a connection that stays. It returns all that the hub says until it ends the connection.
type door func(ctx context.Context, at service.Addresses, token string) (string, error)

// overWebSocket connects at a path, and says something.
func overWebSocket(path, first string) door {
	return func(ctx context.Context, at service.Addresses, token string) (string, error) {
		conn, _, err := websocket.Dial(ctx, "ws://"+at.HTTP+path, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}})
		if err != nil {
			return "", err
		}
		defer conn.CloseNow()
		if first != "" {
			if err := conn.Write(ctx, websocket.MessageText, []byte(first)); err != nil {
				return "", err
			}
		}
		said := ""
		for {
			_, frame, err := conn.Read(ctx)
			if err != nil {
				return said + err.Error(), ctx.Err()
			}
			said += string(frame) + "\n"
		}
	}
}

// overHTTP sends a request and reads the answer to its end.
func overHTTP(method, path, body string, header ...string) door {
	return func(ctx context.Context, at service.Addresses, token string) (string, error) {
		r, err := http.NewRequestWithContext(ctx, method, "http://"+at.HTTP+path, strings.NewReader(body))
		if err != nil {
			return "", err
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("A2A-Version", "1.0")
		r.Header.Set("X-Agent-Id", "ana")
		for _, h := range header {
			name, value, _ := strings.Cut(h, ": ")
			r.Header.Set(name, value)
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp.Status + " " + string(text), ctx.Err()
	}
}

// overGRPC makes a call and reads its answers to their end.
func overGRPC(call func(ctx context.Context, cc *grpc.ClientConn) (recv func() error, err error)) door {
	return func(ctx context.Context, at service.Addresses, token string) (string, error) {
		cc, err := grpc.NewClient(at.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return "", err
		}
		defer cc.Close()
		recv, err := call(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token), cc)
		for err == nil {
			err = recv()
		}
		return err.Error(), ctx.Err()
	}
}

func TestAConnectionOverTheQuotaIsRefusedAtEveryDoor(t *testing.T) {
	dir := t.TempDir()
	const token = "anas-secret-0123456789"
	c := config.Default()
	c.GRPCAddr, c.HTTPAddr, c.PiAddr = "127.0.0.1:0", "127.0.0.1:0", ""
	c.Quotas.Connections = 1
	c.Auth.Tokens = filepath.Join(dir, "tokens.yaml")
	if err := os.WriteFile(c.Auth.Tokens, fmt.Appendf(nil, "tokens:\n  - {principal: ana, agents: [ana], operator: true, sha256: %x}\n", sha256.Sum256([]byte(token))), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := service.Start(t.Context(), c, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Stop(stop, "test"); err != nil {
			t.Errorf("stopping: got %v, want no error", err)
		}
	})
	held, _, err := websocket.Dial(t.Context(), "ws://"+s.Addresses().HTTP+service.NativePath, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}})
	if err != nil {
		t.Fatal(err)
	}
	defer held.CloseNow()
	if _, _, err := held.Read(t.Context()); err != nil { // hello
		t.Fatal(err)
	}
	const sse = "Accept: text/event-stream"
	for name, open := range map[string]door{
		"pi":          overWebSocket("/ws/pi", ""),
		"native":      overWebSocket(service.NativePath, ""),
		"ACP":         overWebSocket("/ws/acp?agent_id=ana", ""),
		"editor":      overWebSocket("/ws/editor?agent=ana", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`),
		"Parallax":    overWebSocket(service.ParallaxPath, `{"type":"register","id":"r","payload":{"agentId":"ana","capabilities":[]}}`),
		"ACP events":  overHTTP("GET", "/acp", "", sse),
		"ACP POST":    overHTTP("POST", "/acp", `{"v":1,"id":"q1","from":"ana","to":"nobody","ts":1771108000000,"kind":"query","ref":null,"payload":{"question":"x"}}`),
		"REST":        overHTTP("POST", "/v1/tasks", `{"to":"nobody","content":"x"}`, sse),
		"REST events": overHTTP("GET", "/v1/events", "", sse),
		"A2A":         overHTTP("POST", "/a2a/ana/message:stream", `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}}`, sse),
		"MCP":         overHTTP("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"agents_list","arguments":{}}}`, "Accept: application/json, text/event-stream"),
		"MCP events":  overHTTP("GET", "/mcp", "", sse),
		"Coven": overGRPC(func(ctx context.Context, cc *grpc.ClientConn) (func() error, error) {
			st, err := covenpb.NewCovenControlClient(cc).AgentStream(ctx)
			if err != nil {
				return nil, err
			}
			err = st.Send(&covenpb.AgentMessage{Payload: &covenpb.AgentMessage_Register{Register: &covenpb.RegisterAgent{AgentId: "ana"}}})
			return func() error { _, err := st.Recv(); return err }, err
		}),
		"Coven conversation": overGRPC(func(ctx context.Context, cc *grpc.ClientConn) (func() error, error) {
			st, err := covenpb.NewClientServiceClient(cc).StreamEvents(ctx, &covenpb.StreamEventsRequest{ConversationKey: "ana"})
			return func() error { _, err := st.Recv(); return err }, err
		}),
		"Coven message": overGRPC(func(ctx context.Context, cc *grpc.ClientConn) (func() error, error) {
			_, err := covenpb.NewClientServiceClient(cc).SendMessage(ctx, &covenpb.ClientSendMessageRequest{ConversationKey: "ana", Content: "x", IdempotencyKey: "k"})
			return func() error { return io.EOF }, err
		}),
		"Coven pack": overGRPC(func(ctx context.Context, cc *grpc.ClientConn) (func() error, error) {
			st, err := covenpb.NewPackServiceClient(cc).Register(ctx, &covenpb.PackManifest{PackId: "ana", Version: "1", Tools: []*covenpb.ToolDefinition{{Name: "ana", InputSchemaJson: "{}"}}})
			return func() error { _, err := st.Recv(); return err }, err
		}),
		"Parallax registry": overGRPC(func(ctx context.Context, cc *grpc.ClientConn) (func() error, error) {
			st, err := registry.NewRegistryClient(cc).Watch(ctx, &registry.WatchRequest{IncludeInitial: true})
			return func() error { _, err := st.Recv(); return err }, err
		}),
		"Parallax gateway": overGRPC(func(ctx context.Context, cc *grpc.ClientConn) (func() error, error) {
			st, err := gateway.NewAgentGatewayClient(cc).Connect(ctx)
			if err != nil {
				return nil, err
			}
			err = st.Send(&gateway.AgentToControlPlane{Payload: &gateway.AgentToControlPlane_Hello{Hello: &gateway.AgentHello{AgentId: "ana"}}})
			return func() error { _, err := st.Recv(); return err }, err
		}),
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			said, err := open(ctx, s.Addresses(), token)
			if err != nil || !strings.Contains(said, "quotas.connections") {
				t.Errorf("got %.300q and %v, want the connection ended, with the quota", said, err)
			}
		})
	}
}
