package service_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
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
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	covenpb "github.com/dragoman-hub/dragoman/proto/coven"
)

// TestEveryDialectSaysAQuotaInItsOwnWords calls over each dialect until the quota of calls
// refuses. Each says that it is the rate, which setting it is and when to come again.
func TestEveryDialectSaysAQuotaInItsOwnWords(t *testing.T) {
	dir := t.TempDir()
	const token = "anas-secret-0123456789"
	c := config.Default()
	c.GRPCAddr, c.HTTPAddr, c.PiAddr = "127.0.0.1:0", "127.0.0.1:0", ""
	c.Quotas.Rate = 5
	c.Auth.Tokens = filepath.Join(dir, "tokens.yaml")
	if err := os.WriteFile(c.Auth.Tokens, fmt.Appendf(nil, "tokens:\n  - {principal: ana, agents: [ana], sha256: %x}\n", sha256.Sum256([]byte(token))), 0o600); err != nil {
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
	agent, _, err := websocket.Dial(t.Context(), "ws://"+s.Addresses().HTTP+service.NativePath, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}})
	if err != nil {
		t.Fatal(err)
	}
	defer agent.CloseNow()
	if err := agent.Write(t.Context(), websocket.MessageText, []byte(`{"call":{"id":"j","act":"join","command":{"card":{"id":"ana"}}}}`)); err != nil {
		t.Fatal(err)
	}
	for joined := false; !joined; {
		_, frame, err := agent.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		joined = strings.Contains(string(frame), `"id":"j"`)
	}
	const calls = 10_000 // the bucket is empty long before
	refused := func(t *testing.T, text string, wants ...string) {
		t.Helper()
		for _, want := range append(wants, "quotas.rate", "come again in") {
			if !strings.Contains(text, want) {
				t.Errorf("got %s, want %q in it", text, want)
			}
		}
	}
	for name, one := range map[string]struct {
		path, body, version string
		status              int
		retryAfter          bool
		wants               []string
	}{
		"REST":          {"/v1/tasks", `{"to":"nobody","content":"x"}`, "", 429, true, []string{`"code":"rate_limited"`, `"retryable":true`}},
		"A2A, JSON-RPC": {"/a2a/ana", `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]},"configuration":{"returnImmediately":true}}}`, "1.0", 200, true, []string{`"code":-32000`, `"reason":"RATE_LIMITED"`, `"retryable":"true"`}},
		"A2A, HTTP":     {"/a2a/ana/message:send", `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]},"configuration":{"returnImmediately":true}}`, "1.0", 429, true, []string{`"status":"RESOURCE_EXHAUSTED"`}},
		"MCP": {
			"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"agent_ask","arguments":{"to":"nobody","content":"x"}}}`, "", 200, false,
			[]string{`"isError":true`, "rate_limited"},
		},
		"ACP": {
			"/acp", `{"v":1,"id":"q%d","from":"ana","to":"nobody","ts":1771108000000,"kind":"query","ref":null,"payload":{"question":"x"}}`, "", 429, false,
			[]string{`"code":"rate_limited"`, `"retryable":true`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range calls {
				body := strings.Replace(one.body, "%d", fmt.Sprint(i), 1)
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Addresses().HTTP+one.path, strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				for header, value := range map[string]string{
					"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream", "X-Agent-Id": "ana", "A2A-Version": one.version,
				} {
					if value != "" {
						r.Header.Set(header, value)
					}
				}
				resp, err := http.DefaultTransport.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				text, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if !strings.Contains(string(text), "quotas.rate") {
					continue
				}
				if resp.StatusCode != one.status || one.retryAfter && resp.Header.Get("Retry-After") != "1" || !json.Valid(text) {
					t.Errorf("got %d, Retry-After %q and %s; want %d, and Retry-After 1: %t", resp.StatusCode, resp.Header.Get("Retry-After"), text, one.status, one.retryAfter)
				}
				refused(t, string(text), one.wants...)
				return
			}
			t.Errorf("got no refusal in %d calls, want one", calls)
		})
	}
	t.Run("Coven", func(t *testing.T) {
		conn, err := grpc.NewClient(s.Addresses().GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
		for i := range calls {
			_, err := covenpb.NewClientServiceClient(conn).SendMessage(ctx, &covenpb.ClientSendMessageRequest{ConversationKey: "nobody", Content: "x", IdempotencyKey: fmt.Sprint(i)})
			if status.Code(err) == codes.ResourceExhausted {
				refused(t, err.Error())
				return
			}
		}
		t.Errorf("got no refusal in %d calls, want one", calls)
	})
}
