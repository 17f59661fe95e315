package pack_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/mcp/pack"
	"github.com/dragoman-hub/dragoman/core"
)

// endpoint is an HTTP server that a test scripts: answer writes what becomes of tools/call.
type endpoint struct {
	t      *testing.T
	modern bool
	tools  string
	answer func(w http.ResponseWriter, r *http.Request, m message)
	// resume answers GET requests; nil for 405.
	resume http.HandlerFunc
	// capabilities are those of a legacy server; "" for tools that change.
	capabilities string
	// answered takes the responses of the hub.
	answered func(m message)

	mu       sync.Mutex
	requests []string // methods, with the headers that matter
	expired  bool     // the session is forgotten
}

const session = "Mcp-Session-Id"

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var m message
	if len(body) > 0 {
		if err := json.Unmarshal(body, &m); err != nil {
			e.t.Errorf("got %s, want JSON", body)
		}
	}
	e.mu.Lock()
	e.requests = append(e.requests, strings.TrimSpace(r.Method+" "+m.Method))
	expired := e.expired
	e.mu.Unlock()
	result := func(text string) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, text)
	}
	switch {
	case r.Method == http.MethodGet && e.resume != nil:
		e.resume(w, r)
	case r.Method == http.MethodGet:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case r.Method == http.MethodDelete, m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	case m.Method == "" && e.answered != nil:
		w.WriteHeader(http.StatusAccepted)
		e.answered(m)
	case m.Method == "server/discover" && e.modern:
		if r.Header.Get("Mcp-Method") != m.Method || r.Header.Get("MCP-Protocol-Version") != "2026-07-28" {
			e.t.Errorf("got the headers %v, want those of the version", r.Header)
		}
		result(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
	case m.Method == "server/discover":
		http.Error(w, "what?", http.StatusBadRequest)
	case m.Method == "initialize":
		w.Header().Set(session, "s1")
		result(`{"protocolVersion":"2025-11-25","capabilities":` + cmp.Or(e.capabilities, `{"tools":{"listChanged":true}}`) + `}`)
	case expired || !e.modern && r.Header.Get(session) != "s1":
		http.Error(w, "no such session", http.StatusNotFound)
	case m.Method == "tools/list":
		result(e.tools)
	case m.Method == "ping":
		result("{}")
	case m.Method == "tools/call":
		e.answer(w, r, m)
	default:
		e.t.Errorf("got %s, want no such request", m.Method)
	}
}

// serve runs a pack with the endpoint.
func (e *endpoint) serve(t *testing.T, opts pack.Options) (*testHub, *running) {
	t.Helper()
	if e.t = t; e.tools == "" {
		e.tools = oneTool
	}
	g := newHub(t)
	srv := httptest.NewServer(e)
	t.Cleanup(srv.Close)
	opts.URL, opts.HTTP = srv.URL, srv.Client()
	return g, g.run(g.pack(opts))
}

func (e *endpoint) seen(request string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.requests {
		if r == request {
			return true
		}
	}
	return false
}

// stream writes the head of an event stream and returns a function that writes to it.
func stream(w http.ResponseWriter) func(format string, args ...any) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	return func(format string, args ...any) {
		fmt.Fprintf(w, format, args...)
		_ = http.NewResponseController(w).Flush()
	}
}

const textResult = `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}`

func TestAnAnswerIsReadFromJSONAndFromAStream(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter, _ *http.Request, m message){
		"JSON": func(w http.ResponseWriter, _ *http.Request, m message) {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			fmt.Fprintf(w, textResult, m.ID, "hello")
		},
		"a stream": func(w http.ResponseWriter, _ *http.Request, m message) {
			stream(w)(": comment\r\n\r\nevent: message\r\ndata: "+textResult+"\r\n\r\n", m.ID, "hello")
		},
		"a stream with data in lines, notifications and garbage": func(w http.ResponseWriter, _ *http.Request, m message) {
			stream(w)("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\ndata: \"params\":{\"progressToken\":%s,\"progress\":1}}\n\ndata: garbage\n\n"+
				"data: {\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}\n\nid: 7\ndata:\n\ndata: "+textResult+"\n\n", m.ID, m.ID, "hello")
		},
		"a stream that stays open": func(w http.ResponseWriter, r *http.Request, m message) {
			stream(w)("data: "+textResult+"\n\n", m.ID, "hello")
			<-r.Context().Done()
		},
	} {
		for _, modern := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, modern %v", name, modern), func(t *testing.T) {
				e := &endpoint{modern: modern, answer: answer}
				g, r := e.serve(t, pack.Options{})
				g.wantOutput("x", `{}`, `{"text":"hello"}`)
				g.wantOutput("x", `{}`, `{"text":"hello"}`)
				r.stop()
				_ = r.wait()
				if got := e.seen("DELETE"); got == modern {
					t.Errorf("got the session deleted: %v, want it of a legacy server only", got)
				}
			})
		}
	}
}

func TestAnAnswerThatIsNoneFailsTheCallAlone(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter, m message)
		code   core.Code
		want   string
	}{
		"no JSON": {func(w http.ResponseWriter, _ message) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, "{")
		}, core.CodeInternal, "cannot be read"},
		"another id": {func(w http.ResponseWriter, _ message) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, textResult, "4711", "")
		}, core.CodeInternal, "not the response"},
		"HTML": {func(w http.ResponseWriter, _ message) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<p>")
		}, core.CodeInternal, "text/html"},
		"403":              {func(w http.ResponseWriter, _ message) { http.Error(w, "no", http.StatusForbidden) }, core.CodeNotAuthorized, "token"},
		"429":              {func(w http.ResponseWriter, _ message) { http.Error(w, "no", http.StatusTooManyRequests) }, core.CodeRateLimited, "later"},
		"500":              {func(w http.ResponseWriter, _ message) { http.Error(w, "no", http.StatusInternalServerError) }, core.CodeUnreachable, "500"},
		"a cut stream":     {func(w http.ResponseWriter, _ message) { stream(w)("data: {") }, core.CodeUnreachable, "broke off"},
		"a cut connection": {func(http.ResponseWriter, message) { panic(http.ErrAbortHandler) }, core.CodeUnreachable, "cannot be reached"},
		"an error": {func(w http.ResponseWriter, m message) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"bad x"}}`, m.ID)
		}, core.CodeInvalid, "bad x"},
		"an error with 400": {func(w http.ResponseWriter, m message) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32020,"message":"HeaderMismatch"}}`, m.ID)
		}, core.CodeInternal, "HeaderMismatch"},
		"a long body": {func(w http.ResponseWriter, m message) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, textResult, m.ID, strings.Repeat("x", 100_000))
		}, core.CodeTooLarge, "1000"},
		"a long event": {func(w http.ResponseWriter, m message) {
			stream(w)("data: "+textResult+"\n\n", m.ID, strings.Repeat("x", 100_000))
		}, core.CodeTooLarge, "1000"},
		"a result of a task": {func(w http.ResponseWriter, m message) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"task","taskId":"1"}}`, m.ID)
		}, core.CodeUnsupported, "task"},
	} {
		t.Run(name, func(t *testing.T) {
			e := &endpoint{modern: true}
			e.answer = func(w http.ResponseWriter, _ *http.Request, m message) {
				if m.Params.Name == "y" {
					w.Header().Set("Content-Type", "application/json")
					fmt.Fprintf(w, textResult, m.ID, "fine")
					return
				}
				c.answer(w, m)
			}
			g, _ := e.serve(t, pack.Options{ResultBytes: 1000})
			g.wantFault("x", `{}`, c.code, c.want)
			g.wantOutput("y", `{}`, `{"text":"fine"}`)
		})
	}
}

func TestALongListOfToolsIsNoLongResult(t *testing.T) {
	var tools []string
	for i := range 100 {
		tools = append(tools, fmt.Sprintf(`{"name":"x%d","description":"%s"}`, i, strings.Repeat("long ", 200)))
	}
	e := &endpoint{modern: true, tools: `{"tools":[` + strings.Join(tools, ",") + `]}`}
	g, _ := e.serve(t, pack.Options{ResultBytes: 1000})
	if got := len(strings.Fields(g.tools())); got != 100 {
		t.Errorf("got %d tools, want all 100 of the long list", got)
	}
}

func TestATokenGoesWithEveryRequestAndIsReadEachTime(t *testing.T) {
	token := "first"
	var got []string
	e := &endpoint{modern: true, answer: func(w http.ResponseWriter, r *http.Request, m message) {
		got = append(got, r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, textResult, m.ID, "fine")
	}}
	g, _ := e.serve(t, pack.Options{Token: func() (string, error) { return token, nil }})
	g.call("x", `{}`)
	token = "second"
	g.call("x", `{}`)
	if len(got) != 2 || got[0] != "Bearer first" || got[1] != "Bearer second" {
		t.Errorf("got %q, want each token", got)
	}
}

func TestARedirectGetsNeitherTheTokenNorTheArguments(t *testing.T) {
	for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			var mu sync.Mutex
			var got []string
			elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, r.Method+" with "+r.Header.Get("Authorization"))
			}))
			defer elsewhere.Close()
			e := &endpoint{
				answer: func(w http.ResponseWriter, r *http.Request, _ message) { http.Redirect(w, r, elsewhere.URL, status) },
				resume: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, status) },
			}
			g, _ := e.serve(t, pack.Options{Token: func() (string, error) { return "secret", nil }})
			g.wantFault("x", `{}`, core.CodeUnreachable, "redirects are not followed", elsewhere.URL)
			mu.Lock()
			defer mu.Unlock()
			if len(got) > 0 {
				t.Errorf("got %q at the place that the redirect names, want nothing", got)
			}
		})
	}
}

func TestMirroredArgumentsAreHeadersOfAModernCall(t *testing.T) {
	var got http.Header
	e := &endpoint{
		modern: true,
		tools: `{"tools":[{"name":"x","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"in":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}},
			"on":{"type":"boolean","x-mcp-header":"On"},"gone":{"type":"string","x-mcp-header":"Gone"}}}},
			{"name":"bad","inputSchema":{"type":"object","properties":{"a":{"type":"array","x-mcp-header":"A"}}}}]}`,
		answer: func(w http.ResponseWriter, r *http.Request, m message) {
			got = r.Header
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, textResult, m.ID, "fine")
		},
	}
	g, _ := e.serve(t, pack.Options{})
	if tools := g.tools(); tools != "p.x" {
		t.Errorf("got the tools %q, want the one with a bad header left out", tools)
	}
	g.call("x", `{"region":"Zürich","in":{"n":7},"on":true}`)
	for name, want := range map[string]string{
		"Mcp-Method": "tools/call", "Mcp-Name": "x", "Mcp-Protocol-Version": "2026-07-28",
		"Mcp-Param-Region": "=?base64?WsO8cmljaA==?=", "Mcp-Param-N": "7", "Mcp-Param-On": "true", "Mcp-Param-Gone": "",
	} {
		if got.Get(name) != want {
			t.Errorf("%s: got %q, want %q", name, got.Get(name), want)
		}
	}
}

func TestALegacyStreamThatIsCutIsResumed(t *testing.T) {
	var id json.RawMessage
	e := &endpoint{answer: func(w http.ResponseWriter, _ *http.Request, m message) {
		id = m.ID
		stream(w)("id: 1\nretry: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"data\":1}}\n\n")
	}}
	e.resume = func(w http.ResponseWriter, r *http.Request) {
		switch last := r.Header.Get("Last-Event-ID"); last {
		case "": // the stream of changes
			stream(w)(": nothing\n\n")
			<-r.Context().Done()
		case "1":
			stream(w)("id: 2\nretry: 1\ndata:\n\n")
		case "2":
			stream(w)("data: "+textResult+"\n\n", id, "resumed")
		default:
			t.Errorf("got the event %q, want 1 or 2", last)
		}
	}
	g, r := e.serve(t, pack.Options{})
	g.wantOutput("x", `{}`, `{"text":"resumed"}`)
	r.stop()
	_ = r.wait()
}

func TestASessionThatTheServerForgetsAtOnceEndsTheRun(t *testing.T) {
	e := &endpoint{answer: func(http.ResponseWriter, *http.Request, message) {}}
	g, r := e.serve(t, pack.Options{})
	e.mu.Lock()
	e.expired = true
	e.mu.Unlock()
	g.wantFault("x", `{}`, core.CodeUnreachable, "pack p")
	if err := r.wait(); err == nil || !strings.Contains(err.Error(), "forgotten the session") {
		t.Errorf("got %v, want the session forgotten", err)
	}
}

func TestAServerThatIsGoneEndsTheRunAfterACheck(t *testing.T) {
	e := &endpoint{modern: true, tools: oneTool, t: t}
	g := newHub(t)
	srv := httptest.NewServer(e)
	r := g.run(g.pack(pack.Options{URL: srv.URL, HTTP: srv.Client()}))
	srv.Close()
	g.wantFault("x", `{}`, core.CodeUnreachable, "pack p")
	if err := r.wait(); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("got %v, want that it cannot be reached", err)
	}
}

func TestACancelOfALegacyCallIsToldToTheServer(t *testing.T) {
	reached := make(chan struct{})
	e := &endpoint{answer: func(w http.ResponseWriter, r *http.Request, _ message) {
		stream(w)(": wait\n\n")
		close(reached)
		<-r.Context().Done()
	}}
	g, r := e.serve(t, pack.Options{})
	go func() { <-reached; r.stop() }()
	g.wantFault("x", `{}`, core.CodeUnreachable, "down")
	_ = r.wait()
	if !e.seen("POST notifications/cancelled") {
		t.Errorf("got %q, want a cancel", e.requests)
	}
}
