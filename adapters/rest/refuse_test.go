package rest_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/dragoman-hub/dragoman/adapters/rest"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/memory"
	"github.com/dragoman-hub/dragoman/core/quota"
)

func TestAnInvalidBodyIsRefusedWithAnExplanation(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{MaxBodyBytes: 2000})
	a := g.agent("a")
	deep := strings.Repeat("[", 500) + strings.Repeat("]", 500)
	for _, c := range []struct {
		name, path, body string
		status           int
		code             core.Code
		texts            []string
	}{
		{"nothing", "/v1/tasks", " ", 400, core.CodeInvalid, []string{"empty"}},
		{"malformed", "/v1/tasks", `{"to":"a",`, 400, core.CodeInvalid, nil},
		{"binary", "/v1/tasks", "\x00\xff\xfe", 400, core.CodeInvalid, nil},
		{"two values", "/v1/tasks", `{"to":"a","content":"x"} {}`, 400, core.CodeInvalid, nil},
		{"not an object", "/v1/tasks", `["a"]`, 400, core.CodeInvalid, []string{"want an object"}},
		{"null", "/v1/tasks", `null`, 400, core.CodeInvalid, []string{"address is missing"}},
		{"duplicate key", "/v1/tasks", `{"to":"a","to":"b","content":"x"}`, 400, core.CodeInvalid, []string{`"to"`}},
		{"duplicate key within data", "/v1/tasks", `{"to":"a","content":"x","data":{"k":1,"k":2}}`, 400, core.CodeInvalid, []string{`"k"`}},
		{"deep", "/v1/tasks", `{"to":"a","content":"x","data":` + deep + `}`, 400, core.CodeInvalid, nil},
		{"wrong type", "/v1/tasks", `{"to":"a","content":7}`, 400, core.CodeInvalid, []string{"content", "want a string"}},
		{"unknown key", "/v1/tasks", `{"to":"a","cnotent":"x"}`, 400, core.CodeInvalid, []string{`"cnotent"`, `did you mean "content"?`}},
		{"wrong case", "/v1/tasks", `{"To":"a","content":"x"}`, 400, core.CodeInvalid, []string{`did you mean "to"?`}},
		{"oversized", "/v1/tasks", `{"to":"a","content":"` + strings.Repeat("x", 2000) + `"}`, 413, core.CodeTooLarge, []string{"2000"}},
		{"no address", "/v1/tasks", `{"content":"x"}`, 400, core.CodeInvalid, []string{"address is missing"}},
		{"wrong address", "/v1/tasks", `{"to":"capability:","content":"x"}`, 400, core.CodeInvalid, []string{"capability:a"}},
		{"the hub itself", "/v1/tasks", `{"to":"hub","content":"x"}`, 422, core.CodeUnsupported, nil},
		{"no content", "/v1/tasks", `{"to":"a"}`, 400, core.CodeInvalid, []string{"content is empty"}},
		{"unknown intent", "/v1/tasks", `{"to":"a","content":"x","intent":"beg"}`, 400, core.CodeInvalid, []string{"intent", "ask"}},
		{"a notice as a task", "/v1/tasks", `{"to":"a","content":"x","intent":"notify"}`, 400, core.CodeInvalid, []string{"/v1/notices"}},
		{"a context that is no object", "/v1/tasks", `{"to":"a","content":"x","context":[1]}`, 400, core.CodeInvalid, []string{"context: want an object"}},
		{"a deadline in the past", "/v1/tasks", `{"to":"a","content":"x","deadline_ms":0}`, 400, core.CodeInvalid, []string{"deadline_ms"}},
		{"a deadline too far in the future", "/v1/tasks", `{"to":"a","content":"x","deadline_ms":9223372036854775807}`, 400, core.CodeInvalid, []string{"deadline_ms"}},
		{"a negative token limit", "/v1/tasks", `{"to":"a","content":"x","max_tokens":-1}`, 400, core.CodeInvalid, []string{"max_tokens"}},
		{"a file without a name", "/v1/tasks", `{"to":"a","attachments":[{"data":"aGk="}]}`, 400, core.CodeInvalid, []string{"attachments[0].name"}},
		{"a file not in base64", "/v1/tasks", `{"to":"a","attachments":[{"name":"n","data":"?"}]}`, 400, core.CodeInvalid, []string{"attachments[0].data", "base64"}},
		{"an overlong thread", "/v1/tasks", `{"to":"a","content":"x","thread":"` + strings.Repeat("t", 513) + `"}`, 400, core.CodeInvalid, []string{"thread"}},
		{"an unsupported receipt", "/v1/tasks", `{"to":"a","content":"x","receipt":"delivered"}`, 400, core.CodeInvalid, []string{"accepted or recorded"}},
		{"an invalid flag", "/v1/tasks?wait=maybe", `{"to":"a","content":"x"}`, 400, core.CodeInvalid, []string{"wait"}},
		{"a notice without a topic", "/v1/notices", `{"to":"a"}`, 400, core.CodeInvalid, []string{"topic"}},
		{"a notice with a task's key", "/v1/notices", `{"to":"a","topics":"x"}`, 400, core.CodeInvalid, []string{`did you mean "topic"?`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := *g
			h.t = t
			h.post(c.path, c.body).refused(c.status, c.code, c.texts...)
		})
	}
	// The server still works.
	id := g.opened(`{"to":"a","content":"still here?"}`)
	a.report(a.accept(), core.Text{Text: "yes"}, core.Done{})
	if d := g.document(id); d.Answer.Text != "yes" {
		t.Errorf("got %q, want yes", d.Answer.Text)
	}
}

func TestABodyWithAnotherContentTypeIsRefused(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	for _, contentType := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "?"} {
		g.post("/v1/tasks", `{"to":"a","content":"x"}`, "Content-Type: "+contentType).
			refused(http.StatusUnsupportedMediaType, core.CodeUnsupported, "application/json")
	}
	g.post("/v1/tasks", `{"to":"a","content":"x"}`, "Content-Type: application/json; charset=utf-8").refused(http.StatusNotFound, core.CodeUnknownAgent)
	g.post("/v1/tasks", `{"to":"a","content":"x"}`, "Content-Type: ").refused(http.StatusNotFound, core.CodeUnknownAgent)
}

func TestABodyThatDoesNotArriveTimesOut(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{WriteTimeout: 30 * time.Millisecond})
	conn, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST /v1/tasks HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("got %v, want an answer", err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	a := answer{t, resp.StatusCode, resp.Header, b}
	a.conforms(http.MethodPost, "/v1/tasks")
	a.refused(http.StatusRequestTimeout, core.CodeTimeout, "send it faster")
}

func TestUnknownPathsAndWrongMethodsAreProblems(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	for _, path := range []string{"/v1/nothing", "/v1/tasks/", "/v2/tasks", "/v1/tasks/x/y"} {
		g.get(path).refused(http.StatusNotFound, core.CodeUnsupported, path, "/v1/openapi.json")
	}
	for path, allow := range map[string]string{"/v1/tasks": "GET, POST", "/v1/agents": "GET", "/v1/tasks/x/cancel": "POST", "/v1/agents/a%2Fb": "GET, PATCH"} {
		for _, method := range []string{http.MethodPut, http.MethodDelete, "BREW"} {
			a := g.do(method, path, "")
			a.refused(http.StatusMethodNotAllowed, core.CodeUnsupported, method, "use "+allow)
			if got := a.header.Get("Allow"); got != allow {
				t.Errorf("%s %s: got Allow %q, want %q", method, path, got, allow)
			}
		}
	}
}

func TestARequestWithoutAPrincipalIsRefused(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	for _, user := range []string{"unauthenticated", "wrong token"} {
		for _, path := range []string{"/v1/hub", "/v1/agents", "/v1/usage", "/v1/events", "/v1/tasks/x", "/v1/threads/x"} {
			a := g.get(path, "X-User: "+user)
			a.refused(http.StatusUnauthorized, core.CodeUnauthenticated, "token")
			if a.header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s: got no WWW-Authenticate, want Bearer", path)
			}
		}
		g.post("/v1/tasks", `{"to":"a","content":"x"}`, "X-User: "+user).refused(http.StatusUnauthorized, core.CodeUnauthenticated)
	}
	handler := rest.New(g.hub, rest.Options{}) // no Principal
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/hub", nil))
	if w.Code != http.StatusUnauthorized {
		t.Errorf("without a Principal: got status %d, want %d", w.Code, http.StatusUnauthorized)
	}
}

func TestTheHandlerWorksInsideAnotherRouter(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	handler := rest.New(g.hub, rest.Options{Principal: func(*http.Request) (core.Principal, error) { return core.Principal{ID: "x"}, nil }})
	handled, mounted := chi.NewRouter(), chi.NewRouter()
	handled.Handle("/v1/*", handler)
	mounted.Mount("/v1", handler)
	for name, outer := range map[string]http.Handler{"handled": handled, "mounted": mounted} {
		w := httptest.NewRecorder()
		outer.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/agents", nil))
		if w.Code != http.StatusOK {
			t.Errorf("%s: got status %d with %s, want %d", name, w.Code, w.Body, http.StatusOK)
		}
	}
}

func TestANewTaskIsRefusedWhileTheHubStops(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	g.agent("a")
	if err := g.hub.Close(t.Context(), "maintenance"); err != nil {
		t.Fatal(err)
	}
	if p := g.post("/v1/tasks", `{"to":"a","content":"x"}`).refused(http.StatusServiceUnavailable, core.CodeUnreachable, "maintenance"); !p.Retryable {
		t.Error("Retryable: got false, want true")
	}
}

func TestAQuotaAndAFullHubSayWhenToComeAgain(t *testing.T) {
	b := memory.New(64 << 10)
	g := start(t, hub.Options{Memory: b, Quotas: quota.NewBook(quota.Limits{Rate: 0.001})}, rest.Options{})
	ask := func(user string) answer {
		return g.do("POST", "/v1/tasks", `{"to":"nobody","content":"hello"}`, "X-User: "+user)
	}
	b.Take(memory.Logs, 64<<10)
	full := ask("alice")
	b.Take(memory.Logs, -64<<10)
	for what, c := range map[string]struct {
		answer
		status int
		code   string
		names  string
	}{
		"a full hub": {full, http.StatusServiceUnavailable, `"overloaded"`, "limits.memory"},
		"a rate":     {ask("alice"), http.StatusTooManyRequests, `"rate_limited"`, "quotas.rate"},
	} {
		body := string(c.body)
		if c.answer.status != c.status || !strings.Contains(body, c.code) || !strings.Contains(body, c.names) || !strings.Contains(body, `"retryable":true`) {
			t.Errorf("%s: got %d with %s, want %d, %s and %s", what, c.answer.status, body, c.status, c.code, c.names)
		}
		if got, err := strconv.Atoi(c.header.Get("Retry-After")); err != nil || got < 1 {
			t.Errorf("%s: got Retry-After %q, want seconds", what, c.header.Get("Retry-After"))
		}
	}
	if got := ask("bob").status; got == http.StatusTooManyRequests {
		t.Errorf("a call of another: got %d, want it admitted", got)
	}
}
