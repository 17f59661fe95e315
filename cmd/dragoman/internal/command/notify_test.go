package command_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

func TestANoticeIsSent(t *testing.T) {
	var sent map[string]any
	answer := `{"id":"t","state":"done","answer":{}}`
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/notices", func(w http.ResponseWriter, r *http.Request) {
		sent = nil
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil || r.URL.Query().Get("wait") != "true" {
			t.Errorf("got %v with the query %s, want JSON with wait=true", err, r.URL.RawQuery)
		}
		_, _ = io.WriteString(w, answer)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	at := "--hub=" + server.URL
	for _, tt := range []struct {
		args []string
		want map[string]any
	}{
		{[]string{"bell", "it", "rings"}, map[string]any{"to": "bell", "topic": "note", "data": "it rings", "importance": "low", "deadline_ms": 30000.0}},
		{[]string{"bell", "--topic", "door.open", "--data", `{"who":"me"}`, "--importance=high", "--timeout=2s"},
			map[string]any{"to": "bell", "topic": "door.open", "data": map[string]any{"who": "me"}, "importance": "high", "deadline_ms": 2000.0}},
	} {
		code, out, stderr := run(t, append([]string{"notify", at}, tt.args...)...)
		if d := cmp.Diff(tt.want, sent); d != "" || code != 0 || out != "delivered\n" || stderr != "" {
			t.Errorf("%q: got %d, %q and %q; sent (-want +got):\n%s", tt.args, code, out, stderr, d)
		}
	}
	if _, out, _ := run(t, "notify", at, "bell", "x", "--json"); !json.Valid([]byte(out)) || !strings.Contains(out, `"done"`) {
		t.Errorf("--json: got %q, want the task", out)
	}
	answer = `{"id":"t","state":"failed","answer":{"fault":{"code":"timeout","message":"nobody took it"}}}`
	if code, _, stderr := run(t, "notify", at, "bell", "x"); code != command.ExitTimeout || !strings.Contains(stderr, "nobody took it") {
		t.Errorf("a notice that failed: got %d and %q, want %d and why", code, stderr, command.ExitTimeout)
	}
	sent = nil
	for _, args := range []string{"", "bell x --data 1", "bell --data {", "bell x --importance=huge", "bell x --topic=", "bell x --timeout=0"} {
		code, _, stderr := run(t, append([]string{"notify", at}, strings.Fields(args)...)...)
		if code != command.ExitUsage || stderr == "" || sent != nil {
			t.Errorf("%q: got %d and %q, sent %v; want a usage error and nothing sent", args, code, stderr, sent)
		}
	}
}

func TestShellsCompleteAgents(t *testing.T) {
	at := fakeHub(t, map[string]string{"GET /v1/agents": `{"agents":[{"id":"bell"},{"id":"x\u202ey"},{"id":"shout"}]}`})
	for _, args := range [][]string{{"ask"}, {"delegate"}, {"notify"}, {"agents"}, {"tasks", "--agent"}} {
		code, out, _ := run(t, append(append([]string{"__complete"}, args[0], at), append(args[1:], "")...)...)
		if !strings.HasPrefix(out, "bell\nshout\n") || code != 0 {
			t.Errorf("%s: got %d and %q, want the agents whose ids can be seen", args, code, out)
		}
	}
	if _, out, _ := run(t, "__complete", "notify", at, "bell", ""); strings.Contains(out, "shout") {
		t.Errorf("after the agent: got %q, want no more agents", out)
	}
	if code, out, _ := run(t, "__complete", "notify", "--hub=http://127.0.0.1:1", ""); code != 0 || strings.Contains(out, "bell") {
		t.Errorf("without a hub: got %d and %q, want nothing", code, out)
	}
}
