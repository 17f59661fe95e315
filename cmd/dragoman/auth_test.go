package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/access"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

// tokensFile writes a file of tokens: each principal has the token that is called
// like itself, and root is an operator.
func tokensFile(t *testing.T, principals ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	writeTokens(t, path, principals...)
	return path
}

func writeTokens(t *testing.T, path string, principals ...string) {
	t.Helper()
	text := "tokens:\n"
	for _, p := range principals {
		hash := access.HashOf(p)
		text += fmt.Sprintf("- principal: %s\n  sha256: %s\n  operator: %v\n", p, hex.EncodeToString(hash[:]), p == "root")
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAHubWithTokensLetsNobodyInWithoutOne(t *testing.T) {
	s := newStage(t, func(c *Config) { c.Auth.Tokens = tokensFile(t, "alice") })
	at := "http://" + s.service.bound.HTTP
	pi := "http://" + s.service.bound.Pi
	for _, c := range []struct{ method, url, token, body string }{
		{http.MethodGet, at + "/ws/agent", "", `{"error":"a token is missing: send it as Authorization: Bearer"}`},
		{http.MethodGet, at + "/ws/agent", "wrong", `{"error":"Invalid authentication token"}`},
		{http.MethodGet, at + "/v1/agents", "wrong", `"code":"unauthenticated"`},
		{http.MethodPost, at + "/v1/tasks", "", `"code":"unauthenticated"`},
		{http.MethodGet, at + "/ws/acp", "wrong", "Invalid authentication token"},
		{http.MethodPost, at + "/acp", "", `"kind":"error","ref":null,"payload":{"code":"not_authorized","message":"a token is missing`},
		{http.MethodGet, at + "/acp", "wrong", `"kind":"error","ref":null,"payload":{"code":"not_authorized","message":"Invalid authentication token`},
		{http.MethodGet, at + "/api/agents", "", `{"code":"UNAUTHORIZED","error":"a token is missing: send it as Authorization: Bearer"}`},
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
			// An upgrade that is not refused would end in 101.
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

func TestACallOfGRPCNeedsATokenToo(t *testing.T) {
	s := newStage(t, func(c *Config) { c.Auth.Tokens = tokensFile(t, "alice") })
	cc, err := grpcserver.Dial(t.Context(), s.service.bound.GRPC, grpcserver.DialOptions{})
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

func TestAnAgentOfEachDialectIsWhoseTokenItShows(t *testing.T) {
	s := newStage(t, func(c *Config) { c.Auth.Tokens = tokensFile(t, "alice") })
	for dialect, join := range joins() {
		t.Run(dialect, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			id := core.AgentID("a-" + dialect)
			to := place{http: "http://" + s.service.bound.HTTP, grpc: s.service.bound.GRPC, token: "alice"}
			go func() { ended <- join(ctx, to, core.Card{ID: id, MaxConcurrent: 1}, shout, func(asker) {}, s.log) }()
			s.await(t, "joined "+string(id))
			a, _ := s.service.hub.Agent(id)
			if a.Principal.ID != "alice" || !a.Principal.Authenticated {
				t.Errorf("got %+v, want alice, authenticated", a.Principal)
			}
			leave()
			<-ended
		})
	}
}

func TestWhoseTokenIsTakenBackIsSentAway(t *testing.T) {
	path := tokensFile(t, "alice", "bob")
	s := newStage(t, func(c *Config) { c.Auth.Tokens = path })
	conn, _, err := websocket.Dial(t.Context(), "ws://"+s.service.bound.HTTP+"/ws/agent", &websocket.DialOptions{
		HTTPHeader: http.Header{"Authorization": {"Bearer bob"}, "X-Agent-Id": {"b"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	if err := conn.Write(t.Context(), websocket.MessageText, []byte(`{"type":"register","id":"r","payload":{"capabilities":[]}}`)); err != nil {
		t.Fatal(err)
	}
	s.await(t, "joined b")
	writeTokens(t, path, "alice")
	if err := s.service.authorize(path); err != nil {
		t.Fatal(err)
	}
	var said string
	for {
		_, frame, err := conn.Read(t.Context())
		if err != nil {
			if websocket.CloseStatus(err) != 4401 {
				t.Errorf("got %v, want close 4401", err)
			}
			break
		}
		said = string(frame)
	}
	if !strings.Contains(said, `"code":"AUTHENTICATION_EXPIRED"`) || !strings.Contains(said, `"fatal":true`) {
		t.Errorf("got %s, want AUTHENTICATION_EXPIRED, fatal", said)
	}
}

func TestAHubWithTokensMayListenBeyondThisMachine(t *testing.T) {
	c := localConfig()
	c.HTTPAddr = "0.0.0.0:0"
	if err := checkExposure(c); err == nil || !strings.Contains(err.Error(), "auth.tokens") {
		t.Errorf("got %v, want it refused, with what to do", err)
	}
	c.Auth.Tokens = "tokens.yaml"
	if err := checkExposure(c); err != nil {
		t.Errorf("got %v, want it allowed", err)
	}
}

func TestAFileOfTokensThatCannotBeReadIsNotRepeated(t *testing.T) {
	const good = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
	for name, c := range map[string]struct{ text, want string }{
		"no YAML":                        {"tokens:\n  x: y\n hunter2: y: z", "is not YAML in line"},
		"no list":                        {"tokens: hunter2", "want tokens: and below it a list"},
		"an empty list":                  {"tokens: []", "a list of at least one"},
		"another key":                    {"tokens: []\nhunter2: x", "want tokens: and below it a list"},
		"no token":                       {"tokens: [hunter2]", "token 1: want principal"},
		"the token itself":               {"tokens: [{principal: a, sha256: hunter2}]", "token 1: sha256: want the SHA-256"},
		"no principal":                   {"tokens: [{sha256: " + good + "}]", "principal and sha256 are needed"},
		"no hash":                        {"tokens: [{principal: a}]", "principal and sha256 are needed"},
		"a time that is no":              {"tokens: [{principal: a, sha256: " + good + ", expires: hunter2}]", "expires: want a time"},
		"operator is what":               {"tokens: [{principal: a, sha256: " + good + ", operator: hunter2}]", "operator: want true or false"},
		"an unknown key":                 {"tokens: [{principal: a, sha256: " + good + ", hunter2: x}]", "unknown key"},
		"a principal that is an address": {"tokens:\n- principal: a\n  sha256: " + good + "\n- principal: capability:hunter2\n  sha256: " + good, "tokens.yaml, line 4: token 2: principal: want a name of 1 to 256 bytes, such as alice, on one line"},
		"everybody":                      {"tokens: [{principal: \"*\", sha256: " + good + "}]", "line 1: token 1: principal: want a name"},
		"the hub":                        {"tokens: [{principal: hub, sha256: " + good + "}]", "and none that is an address (hub, *, capability:..., domain:...)"},
		"a line break":                   {"tokens:\n\n- principal: \"a\\nhunter2\"\n  sha256: " + good, "line 3: token 1: principal: want a name"},
		"twice":                          {"tokens: [{principal: a, sha256: " + good + "}, {principal: b, sha256: " + good + "}]", "line 1: token 2: its hash stands there twice"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "tokens.yaml")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := readTokens(path)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want it to say %q and to repeat nothing", err, c.want)
			}
		})
	}
	if _, err := readTokens(filepath.Join(t.TempDir(), "none")); err == nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: got %v, want that there is none", err)
	}
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(path, []byte("tokens: [{principal: a, sha256: "+good+", expires: 2030-01-31T12:00:00Z}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := readTokens(path)
	if err != nil || len(list) != 1 || list[0].Hash != access.HashOf("a") || list[0].Expires.Year() != 2030 {
		t.Errorf("got %+v and %v, want the token of a until 2030", list, err)
	}
}

func TestAHubOfPiAloneRefusesAtEveryPath(t *testing.T) {
	s := newStage(t, func(c *Config) { c.Auth.Tokens, c.HTTPAddr = tokensFile(t, "alice"), "" })
	if status, answer := posts(t, s.service.bound.Pi, acpPath, "{}", nil); status != http.StatusUnauthorized || !strings.Contains(answer, "a token is missing") {
		t.Errorf("got %d and %s, want 401 and that a token is missing", status, answer)
	}
}
