package web_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/transports/web"
)

// refusing is a route that answers without reading its request.
func refusing(s *web.Server) {
	s.Router().Post("/refuse", func(w http.ResponseWriter, _ *http.Request) {
		web.Problem(w, http.StatusUnauthorized, "unauthenticated", "the token is missing")
	})
}

func TestAnAnswerDoesNotWaitForABodyThatNobodyReads(t *testing.T) {
	t.Parallel()
	_, addr := serve(t, web.Options{MaxBodyBytes: 1000}, refusing)
	for name, c := range map[string]struct {
		head string
		want int
	}{
		"a route that refuses":      {"POST /refuse HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n", http.StatusUnauthorized},
		"in chunks":                 {"POST /refuse HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", http.StatusUnauthorized},
		"no route":                  {"POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n", http.StatusNotFound},
		"another method":            {"PUT /refuse HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n", http.StatusMethodNotAllowed},
		"a host that is not served": {"POST /refuse HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 10\r\n\r\n", http.StatusMisdirectedRequest},
		"a page of another origin":  {"POST /refuse HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example\r\nContent-Length: 10\r\n\r\n", http.StatusForbidden},
		"a body over the limit":     {"POST /refuse HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000\r\n\r\n", http.StatusRequestEntityTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, r := dial(t, addr)
			io.WriteString(conn, c.head) // the rest never comes
			_ = conn.SetReadDeadline(time.Now().Add(testTimeout))
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatalf("got %v, want an answer to the head of the request", err)
			}
			if _, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != c.want {
				t.Errorf("got %d and %v, want %d and its whole body", resp.StatusCode, err, c.want)
			}
		})
	}
}

func TestWhatIsLeftOfARequestIsNotTheNextRequest(t *testing.T) {
	t.Parallel()
	_, addr := serve(t, web.Options{}, refusing)
	conn, r := dial(t, addr)
	const next = "POST /refuse HTTP/1.1\r\nHost: localhost\r\n\r\n"
	io.WriteString(conn, fmt.Sprintf("POST /refuse HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", len(next)))
	resp, err := http.ReadResponse(r, nil)
	if err != nil || resp.StatusCode != http.StatusUnauthorized || !resp.Close {
		t.Fatalf("got %+v and %v, want 401 and that the connection ends with it", resp, err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	io.WriteString(conn, next)
	if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
		t.Errorf("got %q and %v, want the end of the connection", rest, err)
	}
}

func TestABodyThatNobodyReadHasItsTimeToEnd(t *testing.T) {
	t.Parallel()
	_, addr := serve(t, web.Options{BodyTimeout: 20 * time.Millisecond}, refusing)
	conn, r := dial(t, addr)
	io.WriteString(conn, "POST /refuse HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc")
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	wantClosed(t, r)
}
