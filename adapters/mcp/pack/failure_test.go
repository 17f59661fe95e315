package pack_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/mcp/pack"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

// roundTrip is a transport that a test scripts.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAServerThatCannotBeReachedIsNamedWithTheCauseAndWhatToDo(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	failing := func(err error) *http.Client {
		return &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) { return nil, err })}
	}
	for name, c := range map[string]struct {
		url   string
		http  *http.Client
		words []string
	}{
		"nothing there":   {closed.URL, http.DefaultClient, []string{"connection refused", "start it, or correct the url"}},
		"an unknown host": {"https://mcp.invalid", failing(&net.DNSError{Err: "no such host", Name: "mcp.invalid"}), []string{"no such host", "correct the host in the url"}},
		"no TLS":          {strings.Replace(plain.URL, "http:", "https:", 1), &http.Client{}, []string{"HTTP response to HTTPS client", "its url begins with http:"}},
		"a certificate that nobody trusts": {
			"https://mcp.example.com",
			failing(&tls.CertificateVerificationError{Err: errors.New("x509: certificate signed by unknown authority")}), []string{"unknown authority", "needs a certificate for that host"},
		},
		"another error": {"https://mcp.example.com", failing(errors.New("no route to host")), []string{"no route to host", "check that it runs, and the url"}},
	} {
		t.Run(name, func(t *testing.T) {
			defer c.http.CloseIdleConnections()
			at := c.url + "/mcp"
			secret := strings.Replace(at, "://", "://ada:secret@", 1) + "?key=secret"
			err := runOnce(t, pack.Options{URL: secret, HTTP: c.http})
			wantWords(t, err, append(c.words, "the MCP server of pack p at "+at+" cannot be reached: ")...)
		})
	}
}

func TestAnAnswerThatBeginsNoSessionIsNamedWithWhatToDo(t *testing.T) {
	html := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(status)
			fmt.Fprint(w, "<html>Welcome")
		}
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		words  []string
	}{
		"a web page": {html(http.StatusOK), []string{`answered 200 OK with text/html that begins "<html>Welcome"`, "correct the url of the pack"}},
		"a page without end": {func(w http.ResponseWriter, r *http.Request) {
			html(http.StatusOK)(w, r)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, []string{"answered 200 OK", "Welcome"}},
		"no such page":         {html(http.StatusNotFound), []string{`answered 404 Not Found with text/html that begins "<html>Welcome"`, "correct the url of the pack", "/mcp"}},
		"HTTP+SSE":             {html(http.StatusMethodNotAllowed), []string{"405 Method Not Allowed", "HTTP+SSE of 2024-11-05 are not supported"}},
		"a broken proxy":       {html(http.StatusBadGateway), []string{"502 Bad Gateway", "Welcome", "call again later, or see its log"}},
		"no token":             {html(http.StatusUnauthorized), []string{"401 Unauthorized", "token_file"}},
		"a token of others":    {html(http.StatusForbidden), []string{"403 Forbidden", "token_file"}},
		"a server with OAuth":  {oauth, []string{"401 Unauthorized", "token_file", "offers OAuth, which the hub does not support"}},
		"a redirect":           {http.RedirectHandler("https://example.com/", http.StatusFound).ServeHTTP, []string{"302 Found", "https://example.com/", "make that the url of the pack"}},
		"another JSON":         {jsonBody(`{"hello":"world"}`), []string{"sent an answer that cannot be read"}},
		"versions to come":     {rpcError(-32022, `"data":{"supported":["2031-01-01"]},`), []string{`["2031-01-01"]`, "the hub speaks 2024-11-05 to 2025-11-25 and 2026-07-28"}},
		"a refused initialize": {rpcError(-32603, ""), []string{"refused initialize: no (-32603)"}},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(c.answer)
			defer srv.Close()
			err := runOnce(t, pack.Options{URL: srv.URL + "?key=secret", HTTP: srv.Client()})
			wantWords(t, err, append(c.words, "the MCP server of pack p at "+srv.URL+" ")...)
		})
	}
}

func oauth(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="https://example.com/.well-known/oauth-protected-resource"`)
	w.WriteHeader(http.StatusUnauthorized)
}

func jsonBody(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, body)
	}
}

// rpcError answers each request with an error.
func rpcError(code int, members string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id := 1
		if r.Header.Get("Mcp-Method") != "server/discover" {
			id = 2
		}
		jsonBody(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":%d,%s"message":"no"}}`, id, code, members))(w, r)
	}
}

func TestATokenThatCannotBeReadIsNoRequestWithoutOne(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("got a request, want none") }))
	defer srv.Close()
	err := runOnce(t, pack.Options{URL: srv.URL, HTTP: srv.Client(), Token: func() (string, error) { return "", errors.New("open p.token: no such file") }})
	wantWords(t, err, "pack p", "token_file", "open p.token: no such file")
}

func TestAProgramThatIsNoServerIsNamedWithWhatItWrote(t *testing.T) {
	for name, end := range map[string]bool{"it ends": true, "it stays": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := runOnce(t, pack.Options{Command: "cat", Dial: dial(func(c *coretest.End[[]byte, []byte]) {
					go func() {
						s := &script{t, c}
						s.write("usage: cat FILE")
						for s.read().Method != "initialize" { // the first process gets a probe before, one in its place none
						}
						if end {
							_ = c.Close(link.Reason{Cause: link.Normal})
						}
					}()
				})})
				wantWords(t, err, "the MCP server of pack p (cat) ", `"usage: cat FILE"`, ": correct the command of the pack if it starts no MCP server on stdin and stdout")
			})
		})
	}
}

func TestAProgramThatSendsBackWhatItIsSentIsNoServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := runOnce(t, pack.Options{Command: "cat", Dial: dial(func(c *coretest.End[[]byte, []byte]) {
			go func() {
				for {
					line, err := c.Receive(t.Context())
					if err != nil || c.Send(t.Context(), line) != nil {
						return
					}
				}
			}()
		})})
		wantWords(t, err, "the MCP server of pack p (cat) sends back what it is sent: correct the command of the pack")
	})
}

func TestAServerThatIsGivenUpIsNamedWithTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newHub(t)
		p := g.pack(pack.Options{Command: "sleep", Dial: dial(func(*coretest.End[[]byte, []byte]) {})})
		why := errors.New("it was not ready in time")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer cancel()
		err := p.Run(ctx, g.session, func() { t.Error("got it ready, want an error") })
		wantWords(t, err, "the MCP server of pack p (sleep) did not answer server/discover or initialize: it was not ready in time")
		if !errors.Is(err, why) {
			t.Errorf("got %v, want it to wrap the reason", err)
		}
	})
}

// runOnce returns the error of a run that does not begin.
func runOnce(t *testing.T, opts pack.Options) error {
	t.Helper()
	g := newHub(t)
	return g.pack(opts).Run(t.Context(), g.session, func() { t.Error("got it ready, want an error") })
}

func wantWords(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("got no error, want one")
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("got  %v\nwant %s", err, w)
		}
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v, want no secrets", err)
	}
}

func TestACallOfAToolOfAPackThatHasNotComeSaysWhatItDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newHub(t)
		s, connected := &script{t: t}, make(chan struct{})
		p := g.pack(pack.Options{Dial: dial(func(end *coretest.End[[]byte, []byte]) {
			s.end = end
			select {
			case <-connected:
			default:
				close(connected)
			}
		})})
		ended := make(chan error, 1)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { ended <- p.Run(ctx, g.session, func() {}) }()
		<-connected
		synctest.Wait()
		g.wantFault("x", `{}`, core.CodeUnreachable, "pack p is starting")
		s.wants("server/discover")
		_ = s.end.Close(link.Reason{Cause: link.Normal}) // and the one in its place
		synctest.Wait()
		_ = s.end.Close(link.Reason{Cause: link.Normal})
		<-ended
		g.wantFault("x", `{}`, core.CodeUnreachable, "pack p has ended", "pack p is down")

		go func() { ended <- p.Run(ctx, g.session, func() {}) }()
		synctest.Wait()
		g.wantFault("x", `{}`, core.CodeUnreachable, "pack p is starting")
		s.begin(oneTool)
		synctest.Wait()
		g.wantFault("z", `{}`, core.CodeUnsupported, "tool not found: p.z")
		stop()
		<-ended
		g.wantFault("z", `{}`, core.CodeUnsupported, "tool not found: p.z")
		_ = s.end.Close(link.Reason{Cause: link.Normal})
	})
}
