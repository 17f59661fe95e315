package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dragoman-hub/dragoman/transports/web"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testTimeout bounds every wait of a test. Only a failing test reaches it.
const testTimeout = 2 * time.Minute

// listen opens a loopback socket.
func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// testContext returns a context that ends after testTimeout.
func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// serve runs a server until the test ends. Its routes are those of mount.
func serve(t testing.TB, o web.Options, mount func(*web.Server)) (s *web.Server, addr string) {
	t.Helper()
	s = web.New(o)
	mount(s)
	return s, serveOn(t, s, listen(t))
}

// serveOn runs s on l until the test ends.
func serveOn(t testing.TB, s *web.Server, l net.Listener) (addr string) {
	t.Helper()
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Errorf("Stop: got %v, want nil", err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve: got %v, want nil", err)
		}
	})
	return l.Addr().String()
}

// hello is a route that greets and repeats the body.
func hello(s *web.Server) {
	s.Router().HandleFunc("/hello", func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, "the handler's own error", http.StatusTeapot)
			return
		}
		io.WriteString(w, "hello "+string(b))
	})
}

// client returns an HTTP client whose connections are closed with the test.
func client(t testing.TB) *http.Client {
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: testTimeout}
}

// request returns a request with the changes.
func request(t testing.TB, method, url string, body io.Reader, change ...func(*http.Request)) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(testContext(t), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(r)
	}
	return r
}

// do sends a request and returns the answer with its whole body.
func do(t testing.TB, r *http.Request) (*http.Response, string) {
	t.Helper()
	resp, err := client(t).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

// wantProblem checks that an answer is a problem of that status and code whose
// detail contains a text.
func wantProblem(t testing.TB, resp *http.Response, body string, status int, code, detail string) {
	t.Helper()
	var got struct {
		Type, Title, Detail, Code string
		Status                    int
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Errorf("got status %d and body %q, want a problem", resp.StatusCode, body)
		return
	}
	if media := resp.Header.Get("Content-Type"); media != "application/problem+json" {
		t.Errorf("content type: got %q, want application/problem+json", media)
	}
	if resp.StatusCode != status || got.Status != status || got.Code != code || !strings.Contains(got.Detail, detail) {
		t.Errorf("got %d %+v, want %d, code %s and %q in the detail", resp.StatusCode, got, status, code, detail)
	}
	if got.Type != "about:blank" || got.Title != http.StatusText(status) {
		t.Errorf("got type %q and title %q, want about:blank and %q", got.Type, got.Title, http.StatusText(status))
	}
}

// dial opens a connection to addr, for plain HTTP.
func dial(t testing.TB, addr string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(testTimeout))
	return conn, bufio.NewReader(conn)
}

// wantClosed checks that the server closes a connection, after any output.
func wantClosed(t testing.TB, r io.Reader) {
	t.Helper()
	if _, err := io.Copy(io.Discard, r); isTimeout(err) {
		t.Errorf("got an open connection after %v, want it closed", testTimeout)
	}
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// within fails the test when done is not closed in time.
func within(t testing.TB, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(testTimeout):
		t.Fatalf("got nothing in %v, want %s", testTimeout, what)
	}
}

// async calls f in a goroutine and returns a channel that is closed when f returns.
func async(f func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	return done
}
