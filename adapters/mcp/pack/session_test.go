package pack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-hub/dragoman/adapters/mcp/pack"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// forgetful is a legacy server that forgets its session.
type forgetful struct {
	t      *testing.T
	refuse func(w http.ResponseWriter, m message) // a request of a session that it does not know
	// stream answers a GET of a session that it knows; nil for 405.
	stream http.HandlerFunc
	// after is called after each request that it has taken.
	after func(m message)

	mu       sync.Mutex
	live     string // the session that it knows
	ready    bool   // its client has said so
	sessions int
	taken    []string
}

// forget makes the server forget its session.
func (f *forgetful) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.live = ""
}

// count returns how often the server has taken a request.
func (f *forgetful) count(method string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.taken {
		if m == method {
			n++
		}
	}
	return n
}

func (f *forgetful) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var m message
	_ = json.Unmarshal(body, &m)
	f.mu.Lock()
	knows := f.live != "" && r.Header.Get(session) == f.live
	if r.Method == http.MethodGet && f.stream != nil && knows {
		f.mu.Unlock()
		f.stream(w, r)
		return
	}
	defer f.mu.Unlock()
	answer := func(result string) {
		f.taken = append(f.taken, m.Method)
		jsonBody(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result))(w, r)
		if f.after != nil {
			f.after(m)
		}
	}
	switch {
	case r.Method == http.MethodGet && f.stream != nil:
		f.refuse(w, m)
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case m.Method == "server/discover":
		http.Error(w, "what?", http.StatusBadRequest)
	case m.Method == "initialize":
		if got := r.Header.Get(session); got != "" {
			f.t.Errorf("got initialize in the session %q, want it in none", got)
		}
		f.sessions++
		f.live, f.ready = fmt.Sprintf("s%d", f.sessions), false
		w.Header().Set(session, f.live)
		answer(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}`)
	case !knows:
		f.refuse(w, m)
	case m.Method == "notifications/initialized":
		f.ready = true
		w.WriteHeader(http.StatusAccepted)
	case !f.ready:
		f.t.Errorf("got %s before the client was ready, want notifications/initialized first", m.Method)
		answer("{}")
	case m.Method == "tools/list":
		answer(oneTool)
	default:
		answer(`{"content":[{"type":"text","text":"` + f.live + `"}]}`)
	}
}

// serve runs a pack with the server.
func (f *forgetful) serve(t *testing.T) (*testHub, *running) {
	t.Helper()
	f.t = t
	g := newHub(t)
	srv := httptest.NewServer(f)
	t.Cleanup(srv.Close)
	return g, g.run(g.pack(pack.Options{URL: srv.URL, HTTP: srv.Client()}))
}

// refusals are how servers refuse a request of a session that they do not know.
var refusals = map[string]func(w http.ResponseWriter, m message){
	"404 with a text":           func(w http.ResponseWriter, _ message) { http.Error(w, "session not found", http.StatusNotFound) },
	"404 with an error":         refusal(http.StatusNotFound, `null`, -32001, "Session not found"),
	"404 with an id of its own": refusal(http.StatusNotFound, `"server-error"`, -32600, "Session not found"),
	"400, no valid session":     refusal(http.StatusBadRequest, `null`, -32000, "Bad Request: No valid session ID provided"),
	"400, not initialized":      refusal(http.StatusBadRequest, `null`, -32000, "Bad Request: Server not initialized"),
	"400 with a text":           func(w http.ResponseWriter, _ message) { http.Error(w, "Invalid session id", http.StatusBadRequest) },
	"400 without an id": func(w http.ResponseWriter, _ message) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Mcp-Session-Id header is required"}}`)
	},
}

func refusal(status int, id string, code int, text string) func(http.ResponseWriter, message) {
	return func(w http.ResponseWriter, _ message) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, id, code, text)
	}
}

func TestACallOfASessionThatTheServerForgotIsMadeOnceMoreInAnother(t *testing.T) {
	for name, refuse := range refusals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &forgetful{refuse: refuse}
			g, r := f.serve(t)
			for n := 1; n <= 3; n++ {
				g.wantOutput("x", `{}`, fmt.Sprintf(`{"text":"s%d"}`, n))
				f.forget()
			}
			if got := f.count("tools/call"); got != 3 {
				t.Errorf("got %d calls taken, want each of 3 once", got)
			}
			r.stop()
			if err := r.wait(); err != context.Canceled {
				t.Errorf("got the end %v, want that of the context", err)
			}
		})
	}
}

func TestTheToolsAreListedAgainInAnotherSession(t *testing.T) {
	listed := make(chan struct{}, 8)
	f := &forgetful{refuse: refusals["404 with a text"], after: func(m message) {
		if m.Method == "tools/list" {
			listed <- struct{}{}
		}
	}}
	g, _ := f.serve(t)
	<-listed
	f.forget()
	g.wantOutput("x", `{}`, `{"text":"s2"}`)
	<-listed
}

func TestCallsThatFindTheirSessionForgottenBeginOneAnother(t *testing.T) {
	f := &forgetful{refuse: refusals["404 with an error"]}
	g, _ := f.serve(t)
	f.forget()
	var results []<-chan *tool.Result
	for range 8 {
		results = append(results, g.start("x", `{}`))
	}
	for _, one := range results {
		if r := <-one; string(r.Output) != `{"text":"s2"}` {
			t.Errorf("got %s and %v, want it answered in the second session", r.Output, r.Fault)
		}
	}
	if got := f.count("initialize"); got != 2 {
		t.Errorf("got %d sessions, want 2", got)
	}
}

// What the server may have taken is not asked a second time.
func TestACallThatTheServerMayHaveTakenIsNotMadeAgain(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(e *endpoint, w http.ResponseWriter, r *http.Request, m message)
		resume http.HandlerFunc
		code   core.Code
		says   string
	}{
		"404 for the method": {func(_ *endpoint, w http.ResponseWriter, _ *http.Request, m message) {
			refusal(http.StatusNotFound, string(m.ID), -32601, "no such method")(w, m)
		}, nil, core.CodeUnsupported, "no such method"},
		"an error of the call": {func(_ *endpoint, w http.ResponseWriter, _ *http.Request, m message) {
			refusal(http.StatusBadRequest, string(m.ID), -32000, "the session of the browser is closed")(w, m)
		}, nil, core.CodeInternal, "the session of the browser is closed"},
		"400 for other reasons": {func(_ *endpoint, w http.ResponseWriter, _ *http.Request, _ message) {
			http.Error(w, "too long", http.StatusBadRequest)
		}, nil, core.CodeUnreachable, "too long"},
		"a stream whose session is gone when it is resumed": {
			func(_ *endpoint, w http.ResponseWriter, _ *http.Request, _ message) {
				stream(w)("id: 1\nretry: 1\ndata:\n\n")
			},
			func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Last-Event-ID") == "" {
					w.WriteHeader(http.StatusMethodNotAllowed)
					return
				}
				http.Error(w, "session not found", http.StatusNotFound)
			}, core.CodeUnreachable, "may still carry out",
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := &endpoint{resume: c.resume}
			e.answer = func(w http.ResponseWriter, r *http.Request, m message) { c.answer(e, w, r, m) }
			g, r := e.serve(t, pack.Options{})
			g.wantFault("x", `{}`, c.code, c.says)
			r.stop()
			_ = r.wait()
			e.mu.Lock()
			defer e.mu.Unlock()
			calls, begun := 0, 0
			for _, request := range e.requests {
				switch request {
				case "POST tools/call":
					calls++
				case "POST initialize":
					begun++
				}
			}
			if calls != 1 || begun != 1 {
				t.Errorf("got %d calls in %d sessions, want 1 in 1: %q", calls, begun, e.requests)
			}
		})
	}
}

// A server that was started again may know of the session neither at a POST nor at a GET.
func TestTheStreamOfASessionThatTheServerForgotIsOpenedInAnother(t *testing.T) {
	tier.Full(t, "waits for the pause before a stream is opened again")
	for name, refuse := range refusals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listening, listed := make(chan string), make(chan struct{}, 8)
			f := &forgetful{refuse: refuse, after: func(m message) {
				if m.Method == "tools/list" {
					listed <- struct{}{}
				}
			}}
			f.stream = func(w http.ResponseWriter, r *http.Request) {
				stream(w)(": begins\n\n")
				select {
				case listening <- r.Header.Get(session):
				case <-r.Context().Done():
				}
				// and ends, as with the server
			}
			g, r := f.serve(t)
			if got := <-listening; got != "s1" {
				t.Errorf("got a stream of %q, want it of s1", got)
			}
			f.forget()
			if got := <-listening; got != "s2" {
				t.Errorf("got a stream of %q, want it of another session, s2", got)
			}
			<-listed
			<-listed
			g.wantOutput("x", `{}`, `{"text":"s2"}`)
			r.stop()
			_ = r.wait()
		})
	}
}

// Such a server may answer a GET, which it does not know, as if it did not know the session.
func TestAServerWithoutAStreamThatAnswers404KeepsItsSession(t *testing.T) {
	refused := make(chan struct{}, 8)
	e := &endpoint{resume: func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "Cannot GET /", http.StatusNotFound)
		refused <- struct{}{}
	}}
	e.answer = func(w http.ResponseWriter, r *http.Request, m message) {
		jsonBody(fmt.Sprintf(textResult, m.ID, "fine"))(w, r)
	}
	g, r := e.serve(t, pack.Options{})
	<-refused
	g.wantOutput("x", `{}`, `{"text":"fine"}`)
	for g.counts.of("no_stream") == 0 {
		runtime.Gosched()
	}
	r.stop()
	_ = r.wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	begun := 0
	for _, request := range e.requests {
		if request == "POST initialize" {
			begun++
		}
	}
	if begun != 1 || len(refused) > 0 {
		t.Errorf("got %d sessions and %d more streams, want 1 and none: %q", begun, len(refused), e.requests)
	}
}

func TestAServerOfTheSDKThatIsRestartedIsAskedAgain(t *testing.T) {
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	addEcho(s)
	begin := func() http.Handler {
		return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
	}
	var mu sync.Mutex
	handler := begin()
	var seen []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		h := handler
		if id := r.Header.Get(session); id != "" && !slices.Contains(seen, id) {
			seen = append(seen, id)
		}
		mu.Unlock()
		if r.Header.Get("Mcp-Method") == "server/discover" {
			http.Error(w, "no session", http.StatusBadRequest)
			return
		}
		h.ServeHTTP(w, r)
	}))
	defer srv.Close()
	g := newHub(t)
	r := g.run(g.pack(pack.Options{URL: srv.URL, HTTP: srv.Client()}))
	g.wantOutput("echo", `{"word":"a"}`, `{"text":"a"}`)
	mu.Lock()
	handler = begin()
	mu.Unlock()
	for of := range s.Sessions() {
		_ = of.Close()
	}
	g.wantOutput("echo", `{"word":"b"}`, `{"text":"b"}`)
	r.stop()
	_ = r.wait()
	if len(seen) != 2 {
		t.Errorf("got the sessions %q, want 2", seen)
	}
}
