package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

// runBridge runs dragoman stdio with the lines as its stdin until it ends, and returns what
// it printed.
func (h *testHub) runBridge(t *testing.T, lines string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	code, stdout, stderr := runWith(ctx, lines, append([]string{"stdio", "--hub", h.url()}, args...)...)
	if ctx.Err() != nil || code != command.ExitDone || stderr != "" {
		t.Fatalf("%.200s: got %d, %q and %q (%v), want it to end", lines, code, stdout, stderr, ctx.Err())
	}
	return stdout
}

func TestTheACPBridgeWaitsForPendingAnswersOnly(t *testing.T) {
	h := newTestHub(t, nil)
	h.startAgent(t, coven.Name, "actor", 4)
	key := h.key()
	long := `{"v":1,"id":"long","kind":"query","to":"actor","payload":{"question":"` + strings.Repeat("x", 1_500_000) + `"}}`
	for name, tt := range map[string]struct {
		lines string
		want  []string // in this order
	}{
		"hello":                     {`{"v":1,"id":"h","kind":"hello","payload":{"protocol_versions":[1]}}`, []string{`"kind":"hello","ref":"h"`}},
		"subscribe":                 {`{"v":1,"id":"s","kind":"subscribe","payload":{"topics":["a.*"]}}`, []string{`"kind":"ack","ref":"s"`}},
		"unsubscribe":               {`{"v":1,"id":"u","kind":"unsubscribe","payload":{}}`, []string{`"kind":"ack","ref":"u"`}},
		"no id":                     {`{"v":1,"kind":"discover"}`, []string{`"kind":"error","ref":null`, "has no id"}},
		"a key twice":               {`{"v":1,"id":"a","id":"b","kind":"discover"}`, []string{`"kind":"error"`}},
		"a key in capitals":         {`{"v":1,"ID":"a","kind":"discover"}`, []string{`"kind":"error","ref":"a"`}},
		"half an envelope":          {`{"v":1,"id":"a","kind":"query"`, []string{`"kind":"error","ref":"a"`}},
		"a notify for nobody":       {`{"v":1,"id":"n","kind":"notify","to":"nobody","payload":{"topic":"t"}}`, []string{`"kind":"error","ref":"n"`}},
		"a kind of its own":         {`{"v":1,"id":"k","kind":"dance"}`, []string{`"kind":"error","ref":"k"`}},
		"the same twice":            {`{"v":1,"id":"d","kind":"discover"}` + "\n" + `{"v":1,"id":"d","kind":"discover"}`, []string{`"kind":"capabilities","ref":"d"`}},
		"too long":                  {long, []string{`"kind":"error","ref":"long"`, "message of 1500073 bytes is over the limit of 1000000: send less"}},
		"too long and then a query": {long + "\n" + `{"v":1,"id":"q","kind":"query","to":"actor","payload":{"question":"say ` + key + `"}}`, []string{`"code":"too_large"`, `"kind":"response","ref":"q"`, shortAnswer(key)}},
		"not UTF-8":                 {"{\"v\":1,\"id\":\"\xff\"}\n" + `{"v":1,"id":"p","kind":"ping"}`, []string{`"code":"invalid_envelope"`, "is not UTF-8", `"kind":"pong","ref":"p"`}},
		"a streamed answer": {
			`{"v":1,"id":"h2","kind":"hello","payload":{"protocol_versions":[1],"features":["progress"]}}` + "\n" +
				`{"v":1,"id":"b","kind":"query","to":"actor","payload":{"question":"burst ` + key + `"}}`,
			[]string{`"kind":"progress","ref":"b"`, `"kind":"response","ref":"b"`},
		},
		"a delegate": {`{"v":1,"id":"g","kind":"delegate","to":"actor","payload":{"task":"say ` + key + `"}}`, []string{`"kind":"ack","ref":"g"`, `"kind":"result","ref":"g"`}},
	} {
		t.Run(name, func(t *testing.T) {
			out := h.runBridge(t, tt.lines+"\n", "--dialect", acp.Dialect, "--id", "peer of "+name)
			rest := out
			for _, want := range tt.want {
				_, behind, found := strings.Cut(rest, want)
				if !found {
					t.Fatalf("got %.2000s, want %s in it, in order", out, want)
				}
				rest = behind
			}
			if strings.Contains(out, `"kind":"pong"`) && !strings.Contains(tt.lines, `"ping"`) {
				t.Errorf("got %s, want no answer to what was not asked", out)
			}
		})
	}
}

func TestThePiBridgeAnswersATooLongLineAsTheHubDoes(t *testing.T) {
	long := `{"id":"1","type":"list_sessions","x":"` + strings.Repeat("x", 11<<20) + `"}`
	next := `{"id":"2","type":"list_sessions"}`
	hub := startChild(t, nil, append([]string{"serve", "--stdio"}, noListeners...)...)
	hub.write(long + "\n" + next + "\n")
	hub.in.Close()
	want := hub.readUntil("exceeds limit")
	if code := hub.wait(); code != 0 {
		t.Fatalf("the hub: got the exit code %d\n%s", code, hub.logged)
	}
	h := newTestHub(t, nil)
	out := h.runBridge(t, long+"\n"+next+"\n")
	if !strings.Contains(out, want+"\n") || !strings.Contains(out, `"id":"2","type":"response","command":"list_sessions","success":true`) {
		t.Errorf("got %.2000s, want %s, and the answer to what came behind it", out, want)
	}
	// A hub with a higher limit accepts the line.
	h = newTestHub(t, func(c *config.Config) { c.Pi.MessageBytes = 12 << 20 })
	if out := h.runBridge(t, long+"\n"); !strings.Contains(out, `"id":"1","type":"response","command":"list_sessions","success":true`) {
		t.Errorf("a hub that takes longer lines: got %.2000s, want the answer", out)
	}
	if out := h.runBridge(t, "{\"type\":\"\xff\"}\n"+next+"\n"); !strings.Contains(out, `"error":"Invalid JSON`) || !strings.Contains(out, `"id":"2"`) {
		t.Errorf("not UTF-8: got %.2000s, want it refused, and the answer to what came behind it", out)
	}
}
