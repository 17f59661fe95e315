package e2e

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/dragoman-hub/dragoman/adapters/auth"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

// tokensFile writes a tokens file: each principal has the token that is its name and may register
// every agent, and root is an operator.
func tokensFile(t testing.TB, principals ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	writeTokens(t, path, principals...)
	return path
}

func writeTokens(t testing.TB, path string, principals ...string) {
	t.Helper()
	own := map[string]string{}
	for _, p := range principals {
		own[p] = p
	}
	if err := os.WriteFile(path, []byte(tokenEntries(own)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// tokenEntries is the text of a tokens file with the principal of each token.
func tokenEntries(principals map[string]string) string {
	text := "tokens:\n"
	for _, token := range slices.Sorted(maps.Keys(principals)) {
		hash, p := auth.HashOf(token), principals[token]
		text += fmt.Sprintf("- principal: %s\n  sha256: %s\n  operator: %v\n  agents: [\"*\"]\n", p, hex.EncodeToString(hash[:]), p == "root")
	}
	return text
}

func TestAHubWithTokensRefusesRequestsWithoutOne(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) { c.Auth.Tokens = tokensFile(t, "alice") })
	at := h.url()
	pi := "http://" + h.service.Addresses().Pi
	for _, c := range []struct{ method, url, token, body string }{
		{http.MethodGet, at + "/ws/agent", "", `{"error":"a token is missing: send it as Authorization: Bearer"}`},
		{http.MethodGet, at + "/ws/agent", "wrong", `{"error":"Invalid authentication token"}`},
		{http.MethodGet, at + "/v1/agents", "wrong", `"code":"unauthenticated"`},
		{http.MethodPost, at + "/v1/tasks", "", `"code":"unauthenticated"`},
		{http.MethodGet, at + "/ws/acp", "wrong", "Invalid authentication token"},
		{http.MethodPost, at + "/acp", "", `"kind":"error","ref":null,"payload":{"code":"not_authorized","message":"a token is missing`},
		{http.MethodGet, at + "/acp", "wrong", `"kind":"error","ref":null,"payload":{"code":"not_authorized","message":"Invalid authentication token`},
		{http.MethodGet, pi + "/acp", "", "a token is missing"},
		{http.MethodGet, at + "/ws/pi", "", "a token is missing"},
		{http.MethodGet, at + "/nowhere", "", "a token is missing"},
		{http.MethodGet, pi + "/", "wrong", "Invalid authentication token"},
		{http.MethodPost, at + "/mcp", "", "token is missing"},
		{http.MethodPost, at + "/mcp", "wrong", "token is unknown"},
	} {
		t.Run(c.method+" "+c.url[strings.LastIndex(c.url, "/"):]+" "+c.token, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), c.method, c.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			// An accepted upgrade would answer 101.
			r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}}
			if strings.Contains(c.url, "/mcp") {
				r.Header = http.Header{"Content-Type": {"application/json"}}
			}
			if c.token != "" {
				r.Header.Set("Authorization", "Bearer "+c.token)
			}
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != http.StatusUnauthorized || !strings.Contains(string(body), c.body) {
				t.Errorf("got %d and %s, want 401 and %s", resp.StatusCode, body, c.body)
			}
			if strings.HasSuffix(c.url, "/ws/agent") && (resp.Header.Get("Content-Type") != "application/json" || string(body) != c.body) {
				t.Errorf("got %s of %s, want the body of the page alone", body, resp.Header.Get("Content-Type"))
			}
		})
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		resp, err := http.Get(at + path) //nolint:noctx // it answers at once
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: got %v, want 200 for anybody", path, err)
		}
		resp.Body.Close()
	}
}

func TestGRPCCallsNeedAToken(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) { c.Auth.Tokens = tokensFile(t, "alice") })
	cc, err := grpcserver.Dial(t.Context(), h.service.Addresses().GRPC, grpcserver.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	me := func(token string) (*wire.MeResponse, error) {
		ctx := t.Context()
		if token != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
		}
		return wire.NewClientServiceClient(cc).GetMe(ctx, nil)
	}
	for _, token := range []string{"", "wrong"} {
		if _, err := me(token); status.Code(err) != codes.Unauthenticated {
			t.Errorf("token %q: got %v, want UNAUTHENTICATED", token, err)
		}
	}
	if got, err := me("alice"); err != nil || got.GetPrincipalId() != "alice" {
		t.Errorf("got %v and %v, want alice", got, err)
	}
	stream, err := wire.NewCovenControlClient(cc).AgentStream(t.Context())
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.Unauthenticated {
		t.Errorf("a stream without a token: got %v, want UNAUTHENTICATED", err)
	}
}

func TestAnAgentsPrincipalIsThatOfItsToken(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) { c.Auth.Tokens = tokensFile(t, "alice") })
	for dialect, join := range service.Joins() {
		t.Run(dialect, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			id := core.AgentID("a-" + dialect)
			to := client.Hub{URL: h.url(), GRPC: h.service.Addresses().GRPC, Token: "alice"}
			go func() {
				ended <- join(ctx, to, core.Card{ID: id, MaxConcurrent: 1}, shout, func(client.AskFunc) {}, h.log)
			}()
			h.await(t, "joined "+string(id))
			a, _ := h.service.Hub().Agent(core.Principal{Operator: true}, id)
			if a.Principal.ID != "alice" || !a.Principal.Authenticated {
				t.Errorf("got %+v, want alice, authenticated", a.Principal)
			}
			leave()
			<-ended
		})
	}
}

func TestATokenNamesTheAgentsThatItsPrincipalMayRegister(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	text := "tokens:\n"
	for token, agents := range map[string]string{"own": "", "team": `, agents: ["team-*", shout]`} {
		hash := auth.HashOf(token)
		text += fmt.Sprintf("- {principal: alice, sha256: %s%s}\n", hex.EncodeToString(hash[:]), agents)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	h := newTestHub(t, func(c *config.Config) { c.Auth.Tokens = path })
	for dialect, join := range service.Joins() {
		for _, c := range []struct {
			token, id string
			allowed   bool
		}{
			{"own", "alice", true},
			{"own", "team-" + dialect, false},
			{"team", "team-" + dialect, true},
			{"team", "shout", true},
			{"team", "alice", false},
		} {
			ctx, leave := context.WithCancel(t.Context())
			joined, ended := make(chan struct{}), make(chan error, 1)
			to := client.Hub{URL: h.url(), GRPC: h.service.Addresses().GRPC, Token: c.token}
			go func() {
				ended <- join(ctx, to, core.Card{ID: core.AgentID(c.id), MaxConcurrent: 1}, shout, func(client.AskFunc) { close(joined) }, h.log)
			}()
			select {
			case <-joined:
				if !c.allowed {
					t.Errorf("%s, token %s as %s: got it joined, want it refused", dialect, c.token, c.id)
				}
				leave()
				<-ended
				h.await(t, "left "+c.id) // the next one may have the same id
			case err := <-ended:
				if c.allowed || err == nil || !strings.Contains(err.Error(), fmt.Sprintf("agents: [%q]", c.id)) {
					t.Errorf("%s, token %s as %s: got %v, want it allowed: %v, or what the operator can write", dialect, c.token, c.id, err, c.allowed)
				}
				leave()
			}
		}
	}
}

func TestARevokedTokenClosesItsConnection(t *testing.T) {
	path := tokensFile(t, "alice", "bob")
	h := newTestHub(t, func(c *config.Config) { c.Auth.Tokens = path })
	conn, _, err := websocket.Dial(t.Context(), "ws://"+h.service.Addresses().HTTP+"/ws/agent", &websocket.DialOptions{
		HTTPHeader: http.Header{"Authorization": {"Bearer bob"}, "X-Agent-Id": {"b"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	if err := conn.Write(t.Context(), websocket.MessageText, []byte(`{"type":"register","id":"r","payload":{"capabilities":[]}}`)); err != nil {
		t.Fatal(err)
	}
	h.await(t, "joined b")
	writeTokens(t, path, "alice")
	if err := h.service.Reload(h.config); err != nil {
		t.Fatal(err)
	}
	var printed string
	for {
		_, frame, err := conn.Read(t.Context())
		if err != nil {
			if websocket.CloseStatus(err) != 4401 {
				t.Errorf("got %v, want close 4401", err)
			}
			break
		}
		printed = string(frame)
	}
	if !strings.Contains(printed, `"code":"AUTHENTICATION_EXPIRED"`) || !strings.Contains(printed, `"fatal":true`) {
		t.Errorf("got %s, want AUTHENTICATION_EXPIRED, fatal", printed)
	}
}

func TestAPiOnlyHubRequiresATokenOnEveryPath(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) { c.Auth.Tokens, c.HTTPAddr = tokensFile(t, "alice"), "" })
	if status, answer := post(t, h.service.Addresses().Pi, service.ACPPath, "{}", nil); status != http.StatusUnauthorized || !strings.Contains(answer, "a token is missing") {
		t.Errorf("got %d and %s, want 401 and that a token is missing", status, answer)
	}
}
