package e2e

import (
	"compress/gzip"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	colpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
	"github.com/dragoman-hub/dragoman/core/link"
	covenpb "github.com/dragoman-hub/dragoman/proto/coven"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

// The trace context of requesters, and its ids.
const (
	callersTrace  = "0af7651916cd43dd8448eb211c80319c"
	callersSpan   = "b7ad6b7169203331"
	callersParent = "00-" + callersTrace + "-" + callersSpan + "-01"
)

// collector is a stub of a collector of OpenTelemetry: OTLP over HTTP, protobuf.
type collector struct {
	*httptest.Server
	mu    sync.Mutex
	spans []*tracepb.Span
	raw   []byte // of all requests
	more  chan struct{}
}

func newCollector(t *testing.T) *collector {
	c := &collector{more: make(chan struct{}, 1)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(body)
			if err != nil {
				t.Error(err)
				return
			}
			body = z
		}
		raw, err := io.ReadAll(body)
		var in colpb.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(raw, &in)
		}
		if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("got %s %s (%s): %v, want spans as protobuf at /v1/traces", r.Method, r.URL, r.Header, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.raw = append(c.raw, raw...)
		for _, r := range in.GetResourceSpans() {
			for _, s := range r.GetScopeSpans() {
				c.spans = append(c.spans, s.GetSpans()...)
			}
		}
		select {
		case c.more <- struct{}{}:
		default:
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(c.Close)
	return c
}

// wait waits until there are n spans, and returns all.
func (c *collector) wait(t *testing.T, n int) []*tracepb.Span {
	t.Helper()
	limit := time.After(watchdog)
	for {
		c.mu.Lock()
		spans := append([]*tracepb.Span(nil), c.spans...)
		c.mu.Unlock()
		if len(spans) >= n {
			return spans
		}
		select {
		case <-c.more:
		case <-limit:
			t.Fatalf("got %d spans, want %d: %v", len(spans), n, spans)
		}
	}
}

// tree writes spans as a tree by their names, below the span with an id.
func tree(spans []*tracepb.Span, below, indent string) string {
	var out strings.Builder
	for _, s := range spans {
		if hex.EncodeToString(s.GetParentSpanId()) == below {
			out.WriteString(indent + s.GetName() + "\n" + tree(spans, hex.EncodeToString(s.GetSpanId()), indent+"  "))
		}
	}
	return out.String()
}

// attribute returns an attribute of a span as text.
func attribute(s *tracepb.Span, key string) string {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == key {
			if v := a.GetValue(); v.GetStringValue() != "" {
				return v.GetStringValue()
			}
			return a.GetValue().String()
		}
	}
	return ""
}

// joinRelay joins an agent that asks the next one what follows the name of that, or answers.
func joinRelay(t *testing.T, dialect string, to client.Hub, id core.AgentID) {
	t.Helper()
	ctx, leave := context.WithCancel(context.Background())
	asks, ended := make(chan client.AskFunc, 1), make(chan error, 1)
	var ask client.AskFunc
	go func() {
		ended <- service.Joins()[dialect](ctx, to, core.Card{ID: id}, func(ctx context.Context, r core.Request, say func(core.Body) error) error {
			next, rest, on := strings.Cut(r.Content, " > ")
			if !on {
				return say(core.Text{Text: "the answer"})
			}
			answer, err := ask(ctx, next, rest)
			if err != nil {
				return err
			}
			return say(core.Text{Text: answer})
		}, func(a client.AskFunc) { asks <- a }, slog.New(slog.DiscardHandler))
	}()
	t.Cleanup(func() {
		leave()
		<-ended
	})
	select {
	case ask = <-asks:
	case err := <-ended:
		ended <- err
		t.Fatalf("%s did not join: %v", id, err)
	case <-time.After(watchdog):
		t.Fatalf("%s did not join", id)
	}
}

// askTraced asks by REST and waits for the answer.
func askTraced(t *testing.T, url, to, content string, header http.Header) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/tasks?wait=true", strings.NewReader(fmt.Sprintf(`{"to":%q,"content":%q}`, to, content)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header.Clone()
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("got %s %s %v, want the answer", resp.Status, b, err)
	}
	return string(b)
}

func traced(c *collector) func(*config.Config) {
	return func(s *config.Config) { s.Traces.Endpoint, s.Traces.Ratio = c.URL, 1 }
}

// hubOf is where agents join.
func (h *testHub) hubOf() client.Hub {
	return client.Hub{URL: h.url(), GRPC: h.service.Addresses().GRPC}
}

func TestAQuestionThatCrossesThreeDialectsIsOneTree(t *testing.T) {
	c := newCollector(t)
	h := newTestHub(t, traced(c))
	joinRelay(t, coven.Name, h.hubOf(), "weaver")
	joinRelay(t, parallax.Dialect, h.hubOf(), "lens")
	joinRelay(t, acp.Dialect, h.hubOf(), "clerk")
	answer := askTraced(t, h.url(), "weaver", "lens > clerk > the question", http.Header{"Traceparent": {callersParent}, "Tracestate": {"a=b"}})
	if !strings.Contains(answer, "the answer") {
		t.Fatalf("got %s, want the answer of the last", answer)
	}
	spans := c.wait(t, 4)
	const want = `invoke_agent weaver
  execute_tool agent_ask
    invoke_agent lens
      invoke_agent clerk
`
	if got := tree(spans, callersSpan, ""); got != want {
		t.Errorf("got the tree\n%swant\n%s", got, want)
	}
	for _, s := range spans {
		if hex.EncodeToString(s.GetTraceId()) != callersTrace || s.GetTraceState() != "a=b" {
			t.Errorf("%s: got the trace %x and the state %q, want those of the caller", s.GetName(), s.GetTraceId(), s.GetTraceState())
		}
		if name := s.GetName(); name == "invoke_agent lens" && (attribute(s, "dragoman.dialect.from") != coven.Name || attribute(s, "dragoman.dialect.to") != parallax.Dialect) {
			t.Errorf("%s: got from %q to %q, want from %s to %s", name, attribute(s, "dragoman.dialect.from"), attribute(s, "dragoman.dialect.to"), coven.Name, parallax.Dialect)
		}
	}
	for _, word := range []string{"the question", "the answer"} {
		if strings.Contains(string(c.raw), word) {
			t.Errorf("got %q exported, want no content", word)
		}
	}
}

// tracedDoor asks the agent weaver below a span, and returns the answer. tree is what is then below
// that span.
type tracedDoor struct {
	name, tree string
	ask        func(parent string) string
}

// check asks at each door.
func (c *collector) check(t *testing.T, doors []tracedDoor) {
	t.Helper()
	above := func(i int) string { return fmt.Sprintf("%016x", i+1) }
	n := 0
	for i, door := range doors {
		if answer := door.ask("00-" + callersTrace + "-" + above(i) + "-01"); !strings.Contains(answer, "the answer") {
			t.Fatalf("%s: got %s, want the answer", door.name, answer)
		}
		n += strings.Count(door.tree, "\n")
	}
	spans := c.wait(t, n)
	for i, door := range doors {
		if got := tree(spans, above(i), ""); got != door.tree {
			t.Errorf("%s: got the tree below the caller\n%swant\n%s", door.name, got, door.tree)
		}
	}
}

// TestEachDoorTakesTheTraceOfItsCaller asks over each dialect that has a place for a trace context.
func TestEachDoorTakesTheTraceOfItsCaller(t *testing.T) {
	c := newCollector(t)
	h := newTestHub(t, traced(c))
	joinRelay(t, coven.Name, h.hubOf(), "weaver")
	c.check(t, []tracedDoor{
		{"REST", "invoke_agent weaver\n", func(parent string) string {
			return askTraced(t, h.url(), "weaver", "hello", http.Header{"Traceparent": {parent}})
		}},
		{"MCP, _meta", "execute_tool agent_ask\n  invoke_agent weaver\n", func(parent string) string {
			_, b := askMCP(t, h.url()+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"agent_ask","arguments":{"to":"weaver","content":"hello"},"_meta":{"traceparent":"`+parent+`"}}}`)
			return b
		}},
		{"MCP, headers", "execute_tool agent_ask\n  invoke_agent weaver\n", func(parent string) string {
			_, b := askMCP(t, h.url()+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"agent_ask","arguments":{"to":"weaver","content":"hello"}}}`, "Traceparent: "+parent)
			return b
		}},
		{"A2A", "invoke_agent weaver\n", func(parent string) string {
			_, b := askMCP(t, h.url()+"/a2a/weaver", `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"hello"}]}}}`, "Traceparent: "+parent, "A2A-Version: 1.0")
			return b
		}},
		{"Coven client", "invoke_agent weaver\n", func(parent string) string {
			cc, err := grpcserver.Dial(t.Context(), h.service.Addresses().GRPC, grpcserver.DialOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer cc.Close()
			ctx := metadata.AppendToOutgoingContext(t.Context(), "traceparent", parent)
			sent, err := covenpb.NewClientServiceClient(cc).SendMessage(ctx, &covenpb.ClientSendMessageRequest{ConversationKey: "weaver", Content: "hello", IdempotencyKey: "k"})
			if err != nil {
				t.Fatal(err)
			}
			return sent.GetStatus() + ": the answer comes later"
		}},
		{"native", "invoke_agent weaver\n", func(parent string) string {
			conn, err := client.DialWebSocket(t.Context(), h.hubOf(), service.NativePath, nil, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(link.Reason{Cause: link.Normal})
			if err := conn.Send(t.Context(), []byte(`{"call":{"id":"1","act":"open","trace":{"traceparent":"`+parent+`","above":"forged","tool":"forged"},"command":{"request":{"intent":"ask","to":"weaver","content":"hello"}}}}`)); err != nil {
				t.Fatal(err)
			}
			for {
				b, err := conn.Receive(t.Context())
				if err != nil || strings.Contains(string(b), `"done"`) {
					return string(b) + " the answer"
				}
			}
		}},
	})
}

func TestAnUnsampledParentStaysUnsampledAndAMalformedOneIsIgnored(t *testing.T) {
	c := newCollector(t)
	h := newTestHub(t, traced(c))
	joinRelay(t, coven.Name, h.hubOf(), "weaver")
	joinRelay(t, acp.Dialect, h.hubOf(), "clerk")
	askTraced(t, h.url(), "weaver", "clerk > unsampled", http.Header{"Traceparent": {strings.TrimSuffix(callersParent, "1") + "0"}})
	askTraced(t, h.url(), "weaver", "malformed", http.Header{"Traceparent": {"00-" + strings.ToUpper(callersTrace) + "-" + callersSpan + "-01"}})
	spans := c.wait(t, 1)
	if len(spans) != 1 || len(spans[0].GetParentSpanId()) != 0 || hex.EncodeToString(spans[0].GetTraceId()) == callersTrace {
		t.Errorf("got %v, want one span, a root of a new trace", spans)
	}
}

// Nothing listens at the address of the collector, or what does never answers: questions are answered
// as ever, and what is not exported is counted.
func TestACollectorThatIsAwayDisturbsNothing(t *testing.T) {
	tier.Full(t, "it waits until spans were sent again in vain")
	t.Parallel()
	away := newCollector(t)
	away.Close()
	hang := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	defer hanging.Close()
	defer close(hang)
	for name, url := range map[string]string{"away": away.URL, "hanging": hanging.URL} {
		t.Run(name, func(t *testing.T) {
			var log lines
			h := newLoggingHub(t, slog.NewJSONHandler(&log, nil), func(s *config.Config) { s.Traces.Endpoint, s.Traces.Ratio = url, 1 })
			joinRelay(t, coven.Name, h.hubOf(), "weaver")
			const n = 20
			for range n {
				askTraced(t, h.url(), "weaver", "hello", http.Header{})
			}
			if name == "hanging" {
				return
			}
			log.await(t, "traces are dropped")
			if got := h.service.Hub().Counters()["traces.dropped"]; got < 1 || got > n {
				t.Errorf("got %d dropped, want some of %d, as far as they were tried", got, n)
			}
		})
	}
}

// serveTraced runs a hub as a process that keeps its journal in dir and exports to c.
func serveTraced(t *testing.T, c *collector, dir string) *servedHub {
	t.Helper()
	cmd := program(t, "serve", "--data-dir", dir, "--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--pi-addr", "", "--log-format", "json")
	cmd.Env = append(cmd.Env, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL)
	return serveHubCmd(t, cmd, "always")
}

// byID returns the spans without those that came again, which have the ids of the first.
func byID(spans []*tracepb.Span) map[string]*tracepb.Span {
	all := map[string]*tracepb.Span{}
	for _, s := range spans {
		all[hex.EncodeToString(s.GetSpanId())] = s
	}
	return all
}

// A hub is killed while an agent works. After the restart the span of the task is exported, as
// an error, in the trace of its caller.
func TestTheSpanOfATaskOutlivesAKill(t *testing.T) {
	c, dir := newCollector(t), t.TempDir()
	first := serveTraced(t, c, dir)
	ctx, leave := context.WithCancel(t.Context())
	in, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- service.Joins()[coven.Name](ctx, client.Hub{GRPC: first.grpc}, core.Card{ID: "keeper"}, func(ctx context.Context, _ core.Request, _ func(core.Body) error) error {
			<-ctx.Done()
			return ctx.Err()
		}, func(client.AskFunc) { close(in) }, slog.New(slog.DiscardHandler))
	}()
	defer func() {
		leave()
		<-ended
	}()
	select {
	case <-in:
	case <-time.After(watchdog):
		t.Fatal("the agent did not join")
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, first.URL+"/v1/tasks", strings.NewReader(`{"to":"keeper","content":"wait","receipt":"recorded"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Traceparent", callersParent)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	first.kill()
	second := serveTraced(t, c, dir)
	s := c.wait(t, 1)[0]
	if hex.EncodeToString(s.GetTraceId()) != callersTrace || hex.EncodeToString(s.GetParentSpanId()) != callersSpan || s.GetStatus().GetCode() != tracepb.Status_STATUS_CODE_ERROR ||
		attribute(s, "error.type") != string(core.CodeUnreachable) || attribute(s, "dragoman.recovered") == "" {
		t.Errorf("got %v, want an error below the caller's span, unreachable and recovered", s)
	}
	second.kill()
	serveTraced(t, c, dir).kill()
	if got := byID(c.wait(t, 1)); len(got) != 1 {
		t.Errorf("after another restart: got %d spans, want 1", len(got))
	}
}

// A hub is killed before it has exported what ended just then. After the restart no span is missing,
// and trees are whole.
func TestTheSpansOfTasksThatEndedJustBeforeAKillAreExported(t *testing.T) {
	c, dir := newCollector(t), t.TempDir()
	first := serveTraced(t, c, dir)
	to := client.Hub{URL: first.URL, GRPC: first.grpc}
	joinRelay(t, coven.Name, to, "weaver")
	joinRelay(t, parallax.Dialect, to, "lens")
	const n, tree1 = 20, "invoke_agent weaver\n  execute_tool agent_ask\n    invoke_agent lens\n"
	for range n {
		askTraced(t, first.URL, "weaver", "lens > hello", http.Header{"Traceparent": {callersParent}})
	}
	// The journal has them once it has what came later.
	askMCP(t, first.URL+"/v1/tasks", `{"to":"lens","content":"hello","receipt":"recorded"}`)
	first.kill()
	second := serveTraced(t, c, dir)
	defer second.kill()
	var all map[string]*tracepb.Span
	for got := 0; len(all) < n*strings.Count(tree1, "\n")+1; { // some may come twice
		spans := c.wait(t, got+1)
		got, all = len(spans), byID(spans)
	}
	if got, want := tree(slices.Collect(maps.Values(all)), callersSpan, ""), strings.Repeat(tree1, n); got != want {
		t.Errorf("got the trees\n%swant\n%s", got, want)
	}
}
