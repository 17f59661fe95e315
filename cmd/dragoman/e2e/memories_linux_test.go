package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

// memoriesPage lists what peers can make a hub keep.
const memoriesPage = "../../../docs/memory.md"

// The memories of the first table of that page, and what fills each as a principal without any right.
var memories = map[string]func(m *mallory){
	"threads that are followed": func(m *mallory) {
		m.calls("/ws/native", m.many, func(i int) string {
			return fmt.Sprintf(`{"call":{"id":"%d","act":"follow","command":{"thread":"t%d"}}}`, i, i)
		})
		m.calls("/ws/native", 8, func(i int) string {
			return fmt.Sprintf(`{"call":{"id":"%d","act":"follow","command":{"thread":"%s%d"}}}`, i, strings.Repeat("x", 9<<20), i)
		})
	},
	"conversations whose questions are watched": func(m *mallory) {
		m.calls("/ws/native", m.many, func(i int) string {
			return fmt.Sprintf(`{"call":{"id":"%d","act":"list","command":{"what":"questions"},"with":{"watch":true,"thread":"t%d"}}}`, i, i)
		})
	},
	"lists of questions that somebody reads": func(m *mallory) {
		for i := range m.many / 10 {
			m.do(http.MethodGet, fmt.Sprintf("/v1/questions?thread=m%d", i), "")
		}
	},
	"refused requests": func(m *mallory) {
		for i := range 8 {
			m.do(http.MethodPost, "/v1/tasks", fmt.Sprintf(`{"to":"nobody","thread":"t%d","content":"%s"}`, i, strings.Repeat("x", 15<<20)))
		}
		m.calls("/ws/native", m.many, func(i int) string {
			return fmt.Sprintf(`{"call":{"id":"%d","act":"open","command":{"request":{"intent":"ask","to":"echo","thread":"t%d","content":"%s"}}}}`, i, i, strings.Repeat("x", 1000))
		})
	},
	"notices for nobody": func(m *mallory) {
		for range m.many / 10 {
			m.do(http.MethodPost, "/v1/notices", `{"topic":"a.b","data":"`+strings.Repeat("x", 10<<10)+`"}`)
		}
	},
	"subscriptions to topics": func(m *mallory) {
		m.calls("/ws/native", m.many, func(i int) string {
			return fmt.Sprintf(`{"call":{"id":"%d","act":"subscribe","command":{"topics":["a.b%d.*"]}}}`, i, i)
		})
	},
	"subscriptions whose connection has ended": func(m *mallory) {
		for i := range m.many / 20 {
			m.calls("/ws/native", 1, func(int) string {
				return fmt.Sprintf(`{"call":{"id":"1","act":"subscribe","command":{"topics":["a.c%d"]}}}`, i)
			})
		}
	},
	"requests that may be repeated": func(m *mallory) {
		for i := range m.many / 10 {
			m.do(http.MethodPost, "/a2a/echo", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m%d","role":"ROLE_USER","parts":[{"text":"?"}]}}}`, i))
		}
	},
	"envelopes that came": func(m *mallory) {
		for i := range m.many / 10 {
			m.do(http.MethodPost, "/acp?agent_id=mallory", fmt.Sprintf(`{"id":"e%d","from":"mallory","to":"echo","kind":"query","payload":{"question":"?"}}`, i))
		}
	},
	"sessions of an editor": func(m *mallory) {
		m.calls("/ws/editor?agent=echo", m.many/4, func(i int) string {
			if i == 0 {
				return `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`
			}
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/new","params":{"cwd":"/tmp","mcpServers":[]}}`, i)
		})
	},
	"sessions of pi": func(m *mallory) {
		m.calls("/ws/pi", m.many/4, func(i int) string {
			return fmt.Sprintf(`{"id":"%d","type":"create_session","sessionId":"s%d"}`, i, i)
		})
	},
}

// mallory is a principal without any right, at a hub of which others make use.
type mallory struct {
	t    *testing.T
	h    *clusterHub
	many int
}

// do sends a request, whatever the answer is.
func (m *mallory) do(method, path, body string) {
	m.t.Helper()
	said(m.t, m.h, method, path, body, "Authorization: Bearer mallory", "Content-Type: application/json", "A2A-Version: 1.0")
}

// calls sends frames over a WebSocket, and returns once each was answered or the connection has ended.
func (m *mallory) calls(path string, n int, frame func(i int) string) {
	m.t.Helper()
	conn, err := client.DialWebSocket(m.t.Context(), client.Hub{URL: m.h.URL, Token: "mallory"}, path, nil, 64<<20)
	if err != nil {
		m.t.Logf("%s: %v", path, err) // it is refused as a whole
		return
	}
	defer conn.Close(link.Reason{Cause: link.Normal})
	for i := range n {
		if conn.Send(m.t.Context(), []byte(frame(i))) != nil || !m.hears(conn) {
			return
		}
	}
}

func (m *mallory) hears(conn *ws.Conn) bool {
	_, err := conn.Receive(m.t.Context())
	return err == nil
}

// TestNoPrincipalWithoutRightsSpendsWhatOthersHave walks the table of docs/memory.md.
func TestNoPrincipalWithoutRightsSpendsWhatOthersHave(t *testing.T) {
	page, err := os.ReadFile(memoriesPage)
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## Filled by what a peer sends")
	table, _, _ = strings.Cut(table, "\n## ")
	var named []string
	for _, row := range regexp.MustCompile(`(?m)^\| ([a-z][^|]*) \|`).FindAllStringSubmatch(table, -1) {
		if row[1] != "memory" {
			named = append(named, row[1])
		}
	}
	for name := range memories {
		if !slices.Contains(named, name) {
			t.Errorf("docs/memory.md: got no row for %q", name)
		}
	}
	h := newHubs(t, 1)[0]
	rules := filepath.Join(h.dir, "rules.yaml")
	if err := os.WriteFile(rules, []byte("rules:\n- {who: alice, may: [see, ask, read, steer, answer], to: \"*\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.args = append(h.args, "--config", h.config(fmt.Sprintf("auth: {tokens: %q, rules: %q}\nlimits: {memory: 128MiB}\njournal: {bytes: 64MiB}\n", tokensFile(t, "alice", "mallory", "root"), rules)))
	h.start()
	h.untilReady()
	joinWorkerAs(t, h, "echo", "root")
	alice := client.Hub{URL: h.URL, Token: "alice"}.Client()
	var task struct{ ID string }
	if err := alice.Post(t.Context(), "/v1/tasks?wait=true", map[string]any{"to": "echo", "content": "of alice", "receipt": "recorded"}, &task); err != nil {
		t.Fatal(err)
	}
	m := &mallory{t, h, tier.Pick(3000, 100_000)}
	const most = 300 << 20
	for _, name := range named {
		fill := memories[name]
		if fill == nil {
			t.Errorf("docs/memory.md has a row for %q, want a way to fill it here", name)
			continue
		}
		fill(m)
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		if rss := procField(status, "VmRSS:") * 1024; rss > most {
			t.Errorf("%s: got %d bytes of resident memory, want at most %d", name, int64(rss), most)
		}
		var got struct{ Answer struct{ Text string } }
		if err := alice.Get(t.Context(), "/v1/tasks/"+task.ID, &got); err != nil || got.Answer.Text != "OF ALICE" {
			t.Errorf("%s: reading the task of alice: got %q and %v, want its answer", name, got.Answer.Text, err)
		}
		var list struct{ Tasks []struct{ ID string } }
		if err := alice.Get(t.Context(), "/v1/tasks?from=alice", &list); err != nil || !slices.ContainsFunc(list.Tasks, func(one struct{ ID string }) bool { return one.ID == task.ID }) {
			t.Errorf("%s: got %d tasks of alice in her list and %v, want the first among them", name, len(list.Tasks), err)
		}
		if err := alice.Post(t.Context(), "/v1/tasks?wait=true", map[string]any{"to": "echo", "content": "again", "thread": name}, new(any)); err != nil {
			t.Errorf("%s: alice asks: %v, want her served", name, err)
		}
	}
}
