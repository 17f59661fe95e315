package e2e

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	covenclient "github.com/dragoman-hub/dragoman/adapters/coven/client"
	covenwire "github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
	covenpb "github.com/dragoman-hub/dragoman/proto/coven"
	"github.com/dragoman-hub/dragoman/proto/parallax/gateway"
)

// webSocket sends frames over a WebSocket that is opened with a header, and returns the first
// message with all of the words.
func (h *testHub) webSocket(t *testing.T, path, header string, frames []string, words ...string) string {
	t.Helper()
	headers := http.Header{}
	if name, value, some := strings.Cut(header, ": "); some {
		headers.Set(name, value)
	}
	conn, err := client.DialWebSocket(t.Context(), h.hubOf(), path, headers, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(link.Reason{Cause: link.Normal})
	for _, f := range frames {
		if err := conn.Send(t.Context(), []byte(f)); err != nil {
			t.Fatal(err)
		}
	}
	for {
		b, err := conn.Receive(t.Context())
		if err != nil {
			t.Fatalf("waiting for %q: got %v", words, err)
		}
		if containsAll(string(b), words) {
			return string(b)
		}
	}
}

func containsAll(s string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(s, w) {
			return false
		}
	}
	return true
}

// Dialects without a place for a trace context take it by an extension, or from the headers of a
// WebSocket.
func TestEachDialectTakesTheTraceOfItsRequester(t *testing.T) {
	c := newCollector(t)
	h := newTestHub(t, traced(c))
	joinRelay(t, coven.Name, h.hubOf(), "weaver")
	const plain, byTool = "invoke_agent weaver\n", "execute_tool agent_ask\n  invoke_agent weaver\n"
	header := func(parent string) string { return "Traceparent: " + parent }
	member := func(parent string) string { return `,"traceparent":"` + parent + `"` }
	none := func(string) string { return "" }
	query := func(more string) string {
		return `{"id":"` + core.NewID() + `","kind":"query","to":"weaver","payload":{"question":"hello"` + more + `}}`
	}
	overACP := func(header, more func(string) string) func(string) string {
		return func(parent string) string {
			return h.webSocket(t, "/ws/acp?agent_id=kit", header(parent), []string{query(more(parent))}, `"response"`)
		}
	}
	overHTTP := func(header, more func(string) string) func(string) string {
		return func(parent string) string {
			headers := []string{"X-Agent-Id: kit"}
			if with := header(parent); with != "" {
				headers = append(headers, with)
			}
			_, b := askMCP(t, h.url()+service.ACPPath, query(more(parent)), headers...)
			return b
		}
	}
	overParallax := func(header, more func(string) string) func(string) string {
		return func(parent string) string {
			return h.webSocket(t, service.ParallaxPath, header(parent), []string{
				`{"type":"register","payload":{"agentId":"asker-` + core.NewID() + `","capabilities":[],"config":{"extensions":["task_request"]}}}`,
				`{"type":"task_request","id":"q1","payload":{"to":"weaver","input":"hello"` + more(parent) + `}}`,
			}, `"task_result"`)
		}
	}
	overPi := func(header, more func(string) string) func(string) string {
		return func(parent string) string {
			session := core.NewID()
			return h.webSocket(t, "/ws/pi", header(parent), []string{
				`{"type":"create_session","sessionId":"` + session + `","agent":"weaver"}`, `{"type":"switch_session","sessionId":"` + session + `"}`,
				`{"type":"prompt","sessionId":"` + session + `","message":"hello"` + more(parent) + `}`,
			}, `"agent_end"`)
		}
	}
	c.check(t, []tracedDoor{
		{"ACP, WebSocket", plain, overACP(none, member)},
		{"ACP, upgrade", plain, overACP(header, none)},
		{"ACP, upgrade, malformed payload", plain, overACP(header, func(string) string { return `,"traceparent":"00-1-2-01"` })},
		{"ACP, HTTP", plain, overHTTP(none, member)},
		{"ACP, headers of HTTP", plain, overHTTP(header, none)},
		{"ACP, stdio", plain, func(parent string) string {
			return h.runBridge(t, query(member(parent))+"\n", "--dialect", acp.Dialect, "--id", "kit")
		}},
		{"Parallax", plain, overParallax(none, func(parent string) string { return `,"metadata":{"traceparent":"` + parent + `"}` })},
		{"Parallax, upgrade", plain, overParallax(header, none)},
		{"pi-server", plain, overPi(none, member)},
		{"pi-server, upgrade", plain, overPi(header, none)},
		{"native, upgrade", plain, func(parent string) string {
			open := `{"call":{"id":"1","act":"open","command":{"request":{"intent":"ask","to":"weaver","content":"hello"}}}}`
			return h.webSocket(t, service.NativePath, header(parent), []string{open}, `"text"`)
		}},
		{"a tool of a Coven agent", byTool, func(parent string) string {
			stream := openCoven(t, h.service.Addresses().GRPC)
			if first, err := registerCoven(t, stream, "caller"); first.GetWelcome() == nil {
				t.Fatalf("got %v, %v; want Welcome", first, err)
			}
			call := &covenpb.ExecutePackTool{RequestId: "1", ToolName: "agent_ask", InputJson: `{"to":"weaver","content":"hello"}`}
			covenwire.SetTrace(call, core.Trace{Parent: parent})
			if err := stream.Send(&covenpb.AgentMessage{Payload: &covenpb.AgentMessage_ExecutePackTool{ExecutePackTool: call}}); err != nil {
				t.Fatal(err)
			}
			m, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			return m.GetPackToolResult().GetOutputJson()
		}},
	})
}

// anyParent finds the traceparents in a message.
var anyParent = regexp.MustCompile("00-" + callersTrace + "-([0-9a-f]{16})-01")

// An agent that declared the extension gets the context of its task, which is what the collector gets
// as the task's span. Any other gets none.
func TestEachDialectGivesTheTraceToAgentsThatDeclaredIt(t *testing.T) {
	c := newCollector(t)
	h := newTestHub(t, traced(c))
	// overWebSocket joins an agent, and returns what waits for a message that has the words and then
	// leaves.
	overWebSocket := func(path, words string, frames ...string) func() (string, func()) {
		conn, err := client.DialWebSocket(t.Context(), h.hubOf(), path, nil, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range frames {
			if err := conn.Send(t.Context(), []byte(f)); err != nil {
				t.Fatal(err)
			}
		}
		return func() (string, func()) {
			for {
				b, err := conn.Receive(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(string(b), words) {
					return string(b), func() { _ = conn.Close(link.Reason{Cause: link.Normal}) }
				}
			}
		}
	}
	given := map[string]string{} // what each agent got, by its id
	for dialect, join := range map[string]func(id, extension string) func() (string, func()){
		coven.Name: func(id, extension string) func() (string, func()) {
			stream := openCoven(t, h.service.Addresses().GRPC)
			if first, err := registerCoven(t, stream, id, extension); first.GetWelcome() == nil {
				t.Fatalf("got %v, %v; want Welcome", first, err)
			}
			return func() (string, func()) {
				m, err := stream.Recv()
				if err != nil {
					t.Fatal(err)
				}
				raw, err := proto.Marshal(m)
				if err != nil {
					t.Fatal(err)
				}
				return string(raw), func() { _ = stream.CloseSend() }
			}
		},
		parallax.Dialect: func(id, extension string) func() (string, func()) {
			return overWebSocket(service.ParallaxPath, `"type":"task"`, `{"type":"register","payload":{"agentId":"`+id+`","capabilities":["x"],"config":{"extensions":["`+extension+`"]}}}`)
		},
		"gateway": func(id, extension string) func() (string, func()) {
			stream := connectGateway(t, h)
			stream.mustSend(&gateway.AgentToControlPlane{RequestId: "h", Payload: &gateway.AgentToControlPlane_Hello{
				Hello: &gateway.AgentHello{AgentId: id, Capabilities: []string{"x"}, Metadata: map[string]string{"extensions": extension}},
			}})
			stream.mustRecv()
			return func() (string, func()) {
				return stream.mustRecv().GetTaskRequest().GetContext()["metadata"], func() { _ = stream.CloseSend() }
			}
		},
		acp.Dialect: func(id, extension string) func() (string, func()) {
			return overWebSocket("/ws/acp?agent_id="+id, `"query"`, `{"id":"c","kind":"capabilities","payload":{"extensions":["`+extension+`"]}}`)
		},
	} {
		for _, extension := range []string{"trace_context", "other"} {
			id := core.AgentID(dialect + "-" + extension)
			next := join(string(id), extension)
			h.await(t, "joined "+string(id))
			askMCP(t, h.url()+"/v1/tasks", `{"to":"`+string(id)+`","content":"?"}`, "Traceparent: "+callersParent)
			got, leave := next()
			leave() // which ends the task
			given[string(id)] = got
		}
	}
	for _, span := range c.wait(t, len(given)) {
		id, own := attribute(span, "gen_ai.agent.id"), hex.EncodeToString(span.GetSpanId())
		found := anyParent.FindStringSubmatch(given[id])
		switch {
		case strings.HasSuffix(id, "-other") && found != nil:
			t.Errorf("%s: got %q, want no trace", id, given[id])
		case strings.HasSuffix(id, "-trace_context") && (len(found) < 2 || found[1] != own):
			t.Errorf("%s: got %q, want the span of the task, %s", id, given[id], own)
		}
		delete(given, id)
	}
	if len(given) > 0 {
		t.Errorf("got no span for %v", given)
	}
}

// A call that steers a task is not above it: the span of the task is linked to that of the call.
func TestTheSpanOfATaskIsLinkedToTheCallThatSteeredIt(t *testing.T) {
	c := newCollector(t)
	h := newTestHub(t, traced(c))
	ctx, leave := context.WithCancel(context.Background())
	steered, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- client.JoinCovenWith(ctx, h.hubOf(), core.Card{ID: "weaver"}, func(ctx context.Context, _ core.Request, say func(core.Body) error) error {
			select {
			case <-steered:
				return say(core.Text{Text: "the answer"})
			case <-ctx.Done():
				return ctx.Err()
			}
		}, covenclient.WorkOptions{Injected: func(core.Injected) (func(), string) { return func() { steered <- struct{}{} }, "" }})
	}()
	defer func() {
		leave()
		<-ended
	}()
	h.await(t, "joined weaver")
	member := `,"traceparent":"` + callersParent + `"`
	for name, steer := range map[string]func() string{
		"REST": func() string {
			_, b := askMCP(t, h.url()+"/v1/tasks", `{"to":"weaver","content":"?"}`)
			id := regexp.MustCompile(`"id": ?"([^"]+)"`).FindStringSubmatch(b)
			if id == nil {
				t.Fatalf("got %s, want a task", b)
			}
			_, b = askMCP(t, h.url()+"/v1/tasks/"+id[1]+"/inject?wait=true", `{"content":"!"}`, "Traceparent: "+callersParent)
			return b
		},
		"ACP": func() string {
			return h.webSocket(t, "/ws/acp?agent_id=kit", "", []string{
				`{"id":"q1","kind":"query","to":"weaver","payload":{"question":"?"}}`,
				`{"id":"n1","kind":"notify","payload":{"topic":"dragoman.context","data":{"ref":"q1","content":"!"}` + member + `}}`,
			}, `"response"`)
		},
		"pi-server": func() string {
			return h.webSocket(t, "/ws/pi", "", []string{
				`{"type":"create_session","sessionId":"s","agent":"weaver"}`, `{"type":"switch_session","sessionId":"s"}`,
				`{"type":"prompt","sessionId":"s","message":"?"}`, `{"type":"steer","sessionId":"s","message":"!"` + member + `}`,
			}, `"agent_end"`)
		},
	} {
		c.mu.Lock()
		c.spans = nil
		c.mu.Unlock()
		answer := steer()
		s := c.wait(t, 1)[0]
		links := s.GetLinks()
		if len(links) != 1 || hex.EncodeToString(links[0].GetTraceId()) != callersTrace || hex.EncodeToString(links[0].GetSpanId()) != callersSpan || len(s.GetParentSpanId()) > 0 {
			t.Errorf("%s: got %v (%s), want a root that is linked to the caller's span", name, s, answer)
		}
	}
}

// Whatever the log says about a task that is in a trace, it says with the id of the trace.
func TestEachLineAboutATaskHasTheIDOfItsTrace(t *testing.T) {
	c := newCollector(t)
	var log lines
	h := newLoggingHub(t, slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}), func(s *config.Config) {
		traced(c)(s)
		s.Limits.CancelGrace = time.Millisecond
	})
	stream := openCoven(t, h.service.Addresses().GRPC)
	if first, err := registerCoven(t, stream, "weaver", "cancellation", "max_concurrent=9"); first.GetWelcome() == nil {
		t.Fatalf("got %v, %v; want Welcome", first, err)
	}
	respond := func(m *covenpb.MessageResponse) {
		t.Helper()
		if err := stream.Send(&covenpb.AgentMessage{Payload: &covenpb.AgentMessage_Response{Response: m}}); err != nil {
			t.Fatal(err)
		}
	}
	asked := func() string {
		t.Helper()
		askMCP(t, h.url()+"/v1/tasks", `{"to":"weaver","content":"?"}`, "Traceparent: "+callersParent)
		for {
			m, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if id := m.GetSendMessage().GetRequestId(); id != "" {
				return id
			}
		}
	}
	answered := asked()
	respond(&covenpb.MessageResponse{RequestId: answered}) // no event
	done := &covenpb.MessageResponse{RequestId: answered, Event: &covenpb.MessageResponse_Done{Done: &covenpb.Done{}}}
	respond(done)
	respond(done) // too late
	silent := asked()
	askMCP(t, h.url()+"/v1/tasks/"+silent+"/cancel", `{}`)
	for _, message := range []string{"refused a message of an agent", "ignored an event of an agent", "agent did not answer a cancel in time", "agent did not end a task in time"} {
		line := log.await(t, message)
		if line["task"] == nil || line["trace_id"] != callersTrace {
			t.Errorf("got %v, want its task and the id of its trace, %s", line, callersTrace)
		}
	}
	for _, line := range log.all(t) {
		if line["task"] != nil && line["trace_id"] != callersTrace {
			t.Errorf("got %v, want the id of the trace, %s", line, callersTrace)
		}
	}
}

// lines is a log in JSON.
type lines struct {
	mu   sync.Mutex
	text []byte
	more chan struct{} // closed with the next line; nil before somebody waits
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, b...)
	if l.more != nil {
		close(l.more)
		l.more = nil
	}
	return len(b), nil
}

func (l *lines) all(t *testing.T) (all []map[string]any) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range bytes.Lines(l.text) {
		var one map[string]any
		if err := json.Unmarshal(line, &one); err != nil {
			t.Fatalf("got the line %s: %v", line, err)
		}
		all = append(all, one)
	}
	return all
}

// await returns the first line whose message begins so.
func (l *lines) await(t *testing.T, message string) map[string]any {
	t.Helper()
	limit := time.After(watchdog)
	for {
		l.mu.Lock()
		if l.more == nil {
			l.more = make(chan struct{})
		}
		more := l.more
		l.mu.Unlock()
		for _, line := range l.all(t) {
			if text, _ := line["msg"].(string); strings.HasPrefix(text, message) {
				return line
			}
		}
		select {
		case <-more:
		case <-limit:
			t.Fatalf("got no line %q", message)
		}
	}
}
