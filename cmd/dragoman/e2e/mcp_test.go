package e2e

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
)

// fence matches a code block of a page.
var fence = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// covenMCP registers a Coven agent and returns its MCP endpoint and token, and a function that
// disconnects it.
func covenMCP(t *testing.T, h *testHub, id string) (endpoint, token string, leave func()) {
	t.Helper()
	stream := openCoven(t, h.service.Addresses().GRPC)
	first, err := registerCoven(t, stream, id)
	if err != nil || first.GetWelcome() == nil {
		t.Fatalf("registering: got %v and %v, want Welcome", first, err)
	}
	return first.GetWelcome().GetMcpEndpoint(), first.GetWelcome().GetMcpToken(), func() {
		if err := stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		h.await(t, "left "+id)
	}
}

// askMCP sends a message with plain HTTP and returns the status and the body.
func askMCP(t *testing.T, url, body string, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
		if name == "Host" {
			r.Host = value
		}
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatalf("POST %s: got %v, want an answer", url, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestACovenAgentAsksAParallaxAgentThroughMCP(t *testing.T) {
	h := newTestHub(t, nil)
	h.startAgent(t, "parallax", "bob", 1)
	endpoint, token, leave := covenMCP(t, h, "ann")
	if want := h.url() + "/mcp"; endpoint != want || token == "" {
		t.Fatalf("got the endpoint %q and a token of %d bytes, want %q and one", endpoint, len(token), want)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: endpoint + "/" + token}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	key := h.key()
	r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "agent_ask", Arguments: map[string]any{"to": "bob", "content": "say " + key}})
	if err != nil || r.IsError {
		t.Fatalf("agent_ask: got %+v and %v, want an answer", r, err)
	}
	opened := h.await(t, key+" opened").(core.Event).Body.(core.Opened)
	if opened.From.ID != "ann" {
		t.Errorf("got a request from %+v, want one from ann", opened.From)
	}
	const list = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	if status, body := askMCP(t, endpoint, list, "Authorization: Bearer "+token); status != http.StatusOK || !strings.Contains(body, "agent_ask") {
		t.Errorf("with Bearer: got %d %s, want the tools", status, body)
	}
	leave()
	if status, body := askMCP(t, endpoint+"/"+token, list); status != http.StatusUnauthorized || !strings.Contains(body, "connect again") {
		t.Errorf("after the agent left: got %d %s, want 401 and what to do", status, body)
	}
}

func TestMCPChecksHostAndOrigin(t *testing.T) {
	h := newTestHub(t, nil)
	url := h.url() + "/mcp"
	const ping = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	for header, want := range map[string]int{
		"Host: localhost": http.StatusOK, "Host: evil.example": http.StatusMisdirectedRequest,
		"Origin: http://" + h.service.Addresses().HTTP: http.StatusOK, "Origin: https://evil.example": http.StatusForbidden,
	} {
		if got, body := askMCP(t, url, ping, header); got != want {
			t.Errorf("%s: got %d %s, want %d", header, got, body, want)
		}
	}
}

func TestTheMCPEndpointIsASetting(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) { c.MCP.Endpoint = "https://hub.example.com/mcp" })
	if endpoint, _, _ := covenMCP(t, h, "ann"); endpoint != "https://hub.example.com/mcp" {
		t.Errorf("got %q, want what was set", endpoint)
	}
}

// Each block of the page is a message and its answer, with … in place of what varies.
func TestTheExamplesOfTheMCPPageWork(t *testing.T) {
	page, err := os.ReadFile("../../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	h := newTestHub(t, nil)
	ctx, leave := context.WithCancel(t.Context())
	var life sync.WaitGroup
	life.Go(func() {
		_ = service.Joins()[coven.Name](ctx, client.Hub{GRPC: h.service.Addresses().GRPC}, core.Card{ID: "shout"}, shout, func(client.AskFunc) {}, h.log) // it is cancelled
	})
	defer life.Wait()
	defer leave()
	h.await(t, "joined shout")
	n := 0
	for _, block := range fence.FindAllStringSubmatch(string(page), -1) {
		if block[1] == "yaml" { // a settings file, which another test reads
			continue
		}
		command, want, _ := strings.Cut(strings.TrimSpace(block[2]), "\n")
		m := regexp.MustCompile(`^curl --json '(.*)' http://127\.0\.0\.1:8080(/mcp\S*)$`).FindStringSubmatch(command)
		if len(m) == 0 || !json.Valid([]byte(m[1])) {
			t.Errorf("got %q, want a message that is sent with curl", command)
			continue
		}
		n++
		_, got := askMCP(t, h.url()+m[2], m[1])
		if like := strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*"); !regexp.MustCompile("^" + like + "$").MatchString(got) {
			t.Errorf("%s: got\n%s\nwant\n%s", command, got, want)
		}
	}
	if n < 4 {
		t.Errorf("got %d messages, want those of the page", n)
	}
}

func TestTheMCPLimitsAreSettings(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) {
		c.MCP.BodyBytes, c.MCP.Deadline, c.MCP.CallTimeout = 2000, 100*time.Millisecond, time.Minute
	})
	h.startAgent(t, "parallax", "bob", 8)
	url := h.url() + "/mcp"
	asks := func(content string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"agent_ask","arguments":{"to":"bob","content":"` + content + `"}}}`
	}
	if status, body := askMCP(t, url, asks(strings.Repeat("x", 2000))); status != http.StatusRequestEntityTooLarge || !strings.Contains(body, "2000 bytes") {
		t.Errorf("a large message: got %d %s, want 413 and the limit", status, body)
	}
	if _, body := askMCP(t, url, asks("hang "+h.key())); !strings.Contains(body, "timeout: no answer by the deadline") {
		t.Errorf("a slow agent: got %s, want a timeout", body)
	}
	_, token, _ := covenMCP(t, h, "ann") // whose deadline is that of Coven
	key, done := h.key(), make(chan string, 1)
	go func() {
		_, body := askMCP(t, url+"/"+token, asks("hang "+key))
		done <- body
	}()
	h.await(t, key+" begun")
	h.signal(key+" released", nil)
	if body := <-done; !strings.Contains(body, `"id":1,"result"`) || strings.Contains(body, "isError") {
		t.Errorf("a call of an agent: got %s, want an answer", body)
	}
}

func TestStoppingTheHubEndsMCPStreams(t *testing.T) {
	h := newTestHub(t, nil)
	url := h.url() + "/mcp"
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
			ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {}, // so that it listens
		})
		cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, MaxRetries: -1}, &mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cs.Close() })
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := h.service.Stop(t.Context(), "enough"); err != nil {
		t.Errorf("stopping: got %v, want no error", err)
	}
	if _, err := io.ReadAll(resp.Body); err != nil {
		t.Errorf("the stream: got %v, want its end", err)
	}
}
