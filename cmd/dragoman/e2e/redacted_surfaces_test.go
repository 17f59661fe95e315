package e2e

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

// aliceSecret is what alice and her agent say to each other, and the hub is to take out of what others get
// with a list or a stream. Each part of it would tell.
const aliceSecret = "sk-tops3cretvalue"

var ofTheSecret = regexp.MustCompile(`tops3|3cret|cretvalue`)

// newSecret starts a hub on which eve may read everything. Alice has asked, and asks again and again until the
// test ends: streams have something to tell.
func newSecret(t *testing.T) *hidden {
	t.Helper()
	with := ruled(t, "- {who: alice, may: \"*\"}\n- {who: eve, may: [see, read, approve, answer, operate]}\n")
	h := &hidden{task: "01900000-0000-7000-8000-000000000000", testHub: newTestHub(t, func(c *config.Config) {
		with(c)
		keepFrames(c)
		c.Auth.Tokens = tokensFile(t, "alice", "eve")
		c.Redact.Patterns = []string{`sk-[a-z0-9]{8,}`}
	})}
	var err error
	if h.cc, err = grpcserver.Dial(t.Context(), h.service.Addresses().GRPC, grpcserver.DialOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.cc.Close() })
	agent := h.joinAgent(t, "a")
	ctx, stop := context.WithCancel(context.Background())
	var working sync.WaitGroup
	t.Cleanup(working.Wait)
	t.Cleanup(stop)
	working.Go(func() {
		for {
			b, err := agent.Next(ctx)
			if err != nil {
				return
			}
			if !has[core.Assigned](b) {
				continue
			}
			for _, body := range []core.Body{
				core.SessionStarted{Session: aliceSecret}, core.Thinking{Text: aliceSecret}, core.ToolCall{ID: "k", Name: "rm", Input: `{"k":"` + aliceSecret + `"}`},
				core.ApprovalRequested{ID: "k", Name: "rm", Input: `{"k":"` + aliceSecret + `"}`}, core.ToolState{ID: "k", State: core.ToolRunning, Detail: aliceSecret},
				core.ToolResult{ID: "k", Output: aliceSecret}, core.Text{Text: "it is sk-tops"}, core.Text{Text: "3cret"}, core.Text{Text: "value; burn after reading"},
				core.File{Name: "f", MediaType: "text/plain", Data: []byte(aliceSecret)},
				core.Done{Data: []byte(`{"k":"` + aliceSecret + `"}`)},
			} {
				_ = agent.Report(b.Task.ID(), body, nil)
			}
		}
	})
	ask := func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url()+"/v1/tasks?wait=true", strings.NewReader(`{"to":"a","content":"use `+aliceSecret+`","data":{"k":"`+aliceSecret+`"},"thread":"trip"}`))
		if err != nil {
			return err
		}
		r.Header = http.Header{"Authorization": {"Bearer alice"}, "Content-Type": {"application/json"}}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
	if err := ask(ctx); err != nil {
		t.Fatal(err)
	}
	working.Go(func() {
		for pace := time.NewTicker(20 * time.Millisecond); ; {
			select {
			case <-pace.C:
				_ = ask(ctx)
			case <-ctx.Done():
				pace.Stop()
				return
			}
		}
	})
	return h
}

// theEnd is in what is told of a task of alice, whether or not the secret is.
const theEnd = "burn after reading"

// listsAndStreams are further ways in which the surfaces of the hub tell of the tasks of others, by endpoint. Each
// returns what eve is told, until it has something of alice.
var listsAndStreams = map[string]func(v visit) string{
	"GET /v1/tasks": func(v visit) string {
		return v.http(http.MethodGet, v.url()+"/v1/tasks?thread=trip&state=done", "") + v.http(http.MethodGet, v.url()+"/v1/tasks?text=sk-tops", "") + v.http(http.MethodGet, v.url()+"/v1/tasks?text=burn", "")
	},
	"GET /v1/threads":      func(v visit) string { return v.http(http.MethodGet, v.url()+"/v1/threads", "") },
	"GET /v1/threads/{id}": func(v visit) string { return v.http(http.MethodGet, v.url()+"/v1/threads/trip", "") },
	"GET /v1/events": func(v visit) string {
		first := v.http(http.MethodGet, v.url()+"/v1/events", "")
		_, id, _ := strings.Cut(first, "id: ")
		id, _, _ = strings.Cut(id, "\n")
		return first + v.http(http.MethodGet, v.url()+"/v1/events", "", "Last-Event-ID: "+id)
	},
	"GET /ws/native": func(v visit) (all string) {
		for _, calls := range []string{
			`{"call":{"id":"1","act":"list","command":{"what":"tasks"}}} {"call":{"id":"2","act":"follow","command":{"thread":"trip"}}}`,
			`{"call":{"id":"1","act":"watch_all","command":{}}}`, `{"call":{"id":"1","act":"watch_all","command":{}},"with":{"positions":true}}`,
		} {
			all += v.talk(v.url()+"/ws/native", http.Header{}, strings.Split(calls, " "), theEnd, `"kind":"tool_call"`)
		}
		return all
	},
	"GET /ws/editor": func(v visit) (all string) {
		for method, until := range map[string][]string{"session/load": {`"id":2,`, theEnd}, "session/resume": {theEnd}} {
			all += v.talk(v.url()+"/ws/editor?agent=a", http.Header{}, []string{
				`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`,
				`{"jsonrpc":"2.0","id":2,"method":"` + method + `","params":{"sessionId":"trip","cwd":"/","mcpServers":[]}}`,
			}, until...)
		}
		return all
	},
	"GET /ws/pi": func(v visit) string {
		return v.talk(v.url()+"/ws/pi", http.Header{}, []string{
			`{"id":"1","type":"create_session","sessionId":"s","thread":"trip"}`, `{"id":"2","type":"switch_session","sessionId":"s"}`, `{"id":"3","type":"get_messages","sessionId":"s"}`,
		}, `"id":"3","type":"response"`, theEnd, `"agent_end"`)
	},
	"/coven.ClientService/StreamEvents": func(v visit) (all string) {
		ctx, cancel := context.WithTimeout(v.ctx(), watchdog)
		defer cancel()
		stream, err := wire.NewClientServiceClient(v.cc).StreamEvents(ctx, &wire.StreamEventsRequest{ConversationKey: "trip"})
		for live := 0; err == nil && live < 2; { // the history has no payload but events
			var m *wire.ClientStreamEvent
			if m, err = stream.Recv(); err == nil {
				all += fmt.Sprint(m) + "\n"
				if m.GetDone() != nil {
					live++
				}
			}
		}
		if err != nil {
			v.Fatal(err)
		}
		return all
	},
}

// notRead are the endpoints where eve reads nothing, and why.
var notRead = map[string]string{
	"GET /v1/approvals": "people decide there, on all that the agent sent", "GET /v1/questions": "people answer there",
	"* /*": "it is GET /ws/pi on a port of its own", "/parallax.registry.Registry/Watch": "it tells of agents alone",
}

// What lists and streams of any dialect tell of somebody else's task is without secrets, also while the task is in
// memory. Every endpoint of the hub is read; only one task that is opened by its id is told as it was said.
func TestNoListOrStreamTellsASecretOfOthers(t *testing.T) {
	t.Parallel()
	h := newSecret(t)
	eve := visit{h, t, "eve"}
	tells := func(name, text string) {
		if at := ofTheSecret.FindStringIndex(text); at != nil {
			t.Errorf("%s: eve gets alice's secret, want it redacted: …%s…", name, text[max(0, at[0]-200):min(len(text), at[1]+50)])
		}
	}
	for _, e := range endpointsOf(t, h.testHub) {
		name := nameOfEndpoint(e)
		s := hiddenSurfaces[name]
		switch {
		case notRead[name] != "" || s.because != "":
		case listsAndStreams[name] != nil && s.read != nil: // in another way, below
		case s.read == nil:
			tells(name, eve.request(name, "a"))
		default:
			tells(name, s.read(eve, "a"))
		}
		if read := listsAndStreams[name]; read != nil {
			text := read(eve)
			tells(name, text)
			if !strings.Contains(text, theEnd) && !strings.Contains(text, "[redacted]") {
				t.Errorf("%s: eve finds nothing of alice's task in\n%.2000s", name, text)
			}
		}
	}
	list := eve.http(http.MethodGet, h.url()+"/v1/tasks?limit=1&state=done", "")
	id := regexp.MustCompile(`"id":"([0-9a-f-]{36})"`).FindStringSubmatch(list)[1]
	for _, path := range []string{"/v1/tasks/" + id, "/v1/tasks/" + id + "/events?follow=false"} {
		if text := eve.http(http.MethodGet, h.url()+path, ""); !strings.Contains(text, aliceSecret) {
			t.Errorf("GET %s: got %.2000s, want what was said to who opens the task by its id", path, text)
		}
	}
}
