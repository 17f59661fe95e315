package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/dragoman-hub/dragoman/adapters/auth"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	corehub "github.com/dragoman-hub/dragoman/core/hub"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

// ruled returns settings with tokens, and with rules that give only alice something.
func ruled(t *testing.T, rules string) func(*config.Config) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(path, []byte("rules:\n"+rules), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(c *config.Config) { c.Auth.Tokens, c.Auth.Rules = tokensFile(t, "alice", "bob", "root"), path }
}

// getAs returns the status and the body of a GET with a token.
func getAs(t *testing.T, url, token string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// packScript is an MCP server in shell, with a tool.
const packScript = `
while read -r line; do
  id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  case "$line" in
  *server/discover*) answer '{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}' ;;
  *tools/list*) answer '{"tools":[{"name":"shelf_echo"}]}' ;;
  *tools/call*) answer '{"content":[{"type":"text","text":"hello"}]}' ;;
  esac
done`

func TestWhatTheSettingsNameWorksUnderRules(t *testing.T) {
	with := ruled(t, "- {who: alice, may: [see, ask], to: [shout, \"pack:*\"]}\n")
	h := newTestHub(t, func(c *config.Config) {
		with(c)
		c.Agents = config.Agents{{Name: "shout", Dialect: "text", Process: config.Process{Command: []string{"tr", "a-z", "A-Z"}}}}
		c.Packs = config.Packs{{Name: "shelf", Process: config.Process{Command: []string{"sh", "-c", packScript}}}}
	})
	if code, out, stderr := run(t, "ask", "--wait", "shout", "hello", "--hub", h.url(), "--token", "alice"); code != command.ExitDone || out != "HELLO\n" {
		t.Errorf("alice asks the agent: got %d, %q and %s, want HELLO", code, out, stderr)
	}
	if code, out, _ := run(t, "ask", "shout", "hello", "--hub", h.url(), "--token", "bob"); code != command.ExitFailed {
		t.Errorf("bob asks the agent: got %d and %s, want it refused", code, out)
	}
	ready := func() bool {
		_, text := getAs(t, h.url()+"/v1/packs", "root")
		return strings.Contains(text, `shelf_echo"`)
	}
	for end := time.Now().Add(watchdog); !ready() && time.Now().Before(end); {
		continue // each round is a request
	}
	if _, text := getAs(t, h.url()+"/v1/packs", "alice"); !strings.Contains(text, `shelf_echo"`) {
		t.Errorf("alice: got %s, want the tool of the pack", text)
	}
	if _, text := getAs(t, h.url()+"/v1/packs", "bob"); strings.Contains(text, "shelf") {
		t.Errorf("bob: got %s, want no trace of the pack", text)
	}
}

func TestUnderRulesOnlyOperatorsReadWhatIsAboutEverybody(t *testing.T) {
	h := newTestHub(t, ruled(t, "- {who: alice, may: operate}\n- {who: bob, may: [see, ask, read], to: \"*\"}\n"))
	for path, needle := range map[string]string{"/metrics": `name="auth.refused"`, "/v1/hub": `"auth.refused"`} {
		getAs(t, h.url()+path, "wrong") // which is counted
		for who, want := range map[string]bool{"alice": true, "root": true, "bob": false} {
			if status, text := getAs(t, h.url()+path, who); strings.Contains(text, needle) != want {
				t.Errorf("%s, %s: got %d and %.300s, want the counters %v", path, who, status, text, want)
			}
		}
	}
	if status, text := getAs(t, h.url()+"/metrics", "bob"); status != http.StatusForbidden || !strings.Contains(text, "not_authorized") {
		t.Errorf("bob: got %d and %s, want %d", status, text, http.StatusForbidden)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if status, text := getAs(t, h.url()+path, ""); status != http.StatusOK {
			t.Errorf("%s without a token: got %d and %s, want %d", path, status, text, http.StatusOK)
		}
	}
}

func TestUnderRulesANoticeOnATopicReachesOnlyWhomItsSenderMayAsk(t *testing.T) {
	h := newTestHub(t, ruled(t, "- {who: alice, may: [see, ask]}\n- {who: bob, may: [see, ask], to: \"*\"}\n"))
	screen := h.service.Hub().Connect(corehub.Identity{Principal: core.Principal{ID: "screen", Authenticated: true}})
	defer screen.Close(nil)
	if err := screen.Subscribe([]string{"door.*"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		who    string
		status int
	}{{"bob", http.StatusBadGateway}, {"alice", http.StatusCreated}} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.url()+"/v1/notices", strings.NewReader(`{"to":"hub","topic":"door.`+c.who+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Authorization": {"Bearer " + c.who}, "Content-Type": {"application/json"}}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.status {
			t.Errorf("%s publishes: got %d, want %d", c.who, resp.StatusCode, c.status)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	b, err := screen.Next(ctx)
	if err != nil || b.Task == nil || b.Task.Topic() != "door.alice" {
		t.Errorf("the subscriber: got %+v and %v, want the notice of alice alone", b, err)
	}
}

func TestASecretGoesOnlyToThePrincipalThatTheIDIsBoundTo(t *testing.T) {
	dir := t.TempDir()
	secrets, tokens := filepath.Join(dir, "secrets.yaml"), filepath.Join(dir, "tokens.yaml")
	text := "tokens:\n"
	for who, agents := range map[string]string{"alice": "[greeter]", "greeter": "[]", "bob": "[]", "carol": "[other]"} {
		text += fmt.Sprintf("- {principal: %s, sha256: %q, agents: %s}\n", who, fmt.Sprintf("%x", auth.HashOf(who)), agents)
	}
	for path, content := range map[string]string{secrets: "greeter: {KEY: hunter2}\n", tokens: text} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h := newTestHub(t, func(c *config.Config) { c.Coven.Secrets, c.Auth.Tokens = secrets, tokens })
	cc, err := grpcserver.Dial(t.Context(), h.service.Addresses().GRPC, grpcserver.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	for _, c := range []struct {
		who, id string
		want    bool
	}{
		{"bob", "greeter", false}, {"carol", "greeter", false}, {"bob", "Greeter", false}, {"carol", "other", false},
		{"alice", "greeter", true},
	} {
		stream, err := wire.NewCovenControlClient(cc).AgentStream(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+c.who))
		if err != nil {
			t.Fatal(err)
		}
		first, err := registerCoven(t, stream, c.id)
		if got := first.GetWelcome().GetSecrets()["KEY"] == "hunter2"; got != c.want {
			t.Errorf("%s as %s: got the secret %v (%v), want %v", c.who, c.id, got, err, c.want)
		}
		if strings.Contains(fmt.Sprint(first, err), "hunter2") != c.want {
			t.Errorf("%s as %s: got %v and %v, want no secret", c.who, c.id, first, err)
		}
		_ = stream.CloseSend()
	}
}
