package web_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core/memory"
	"github.com/dragoman-hub/dragoman/transports/web"
)

// unsized hides the length of a body, so that it is sent in chunks.
type unsized struct{ io.Reader }

func TestABodyOverTheLimitIsRefusedWithAProblem(t *testing.T) {
	_, addr := serve(t, web.Options{}, hello)
	for _, c := range []struct {
		name string
		body io.Reader
		ok   bool
	}{
		{"just fits", strings.NewReader(strings.Repeat("x", web.DefaultMaxBodyBytes)), true},
		{"just fits, in chunks", unsized{strings.NewReader(strings.Repeat("x", web.DefaultMaxBodyBytes))}, true},
		{"one byte more", strings.NewReader(strings.Repeat("x", web.DefaultMaxBodyBytes+1)), false},
		{"one byte more, in chunks", unsized{strings.NewReader(strings.Repeat("x", web.DefaultMaxBodyBytes+1))}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, body := do(t, request(t, "POST", "http://"+addr+"/hello", c.body))
			if !c.ok {
				wantProblem(t, resp, body, http.StatusRequestEntityTooLarge, "too_large", "1000000 bytes")
				return
			}
			if got, want := len(body), len("hello ")+web.DefaultMaxBodyBytes; resp.StatusCode != 200 || got != want {
				t.Errorf("got %d and %d bytes, want 200 and %d", resp.StatusCode, got, want)
			}
		})
	}
}

func TestASlowBodyTimesOut(t *testing.T) {
	_, addr := serve(t, web.Options{BodyTimeout: 20 * time.Millisecond}, hello)
	conn, r := dial(t, addr)
	io.WriteString(conn, "POST /hello HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc")
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	wantProblem(t, resp, string(body), http.StatusRequestTimeout, "timeout", "20ms")
	wantClosed(t, r)
}

func TestASlowHeadTimesOut(t *testing.T) {
	_, addr := serve(t, web.Options{ReadHeaderTimeout: 20 * time.Millisecond}, hello)
	conn, r := dial(t, addr)
	io.WriteString(conn, "GET /hello HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
	wantClosed(t, r)
}

func TestAHeadOverTheLimitIsRefused(t *testing.T) {
	_, addr := serve(t, web.Options{}, hello)
	resp, _ := do(t, request(t, "GET", "http://"+addr+"/hello", nil, func(r *http.Request) {
		r.Header.Set("X-Big", strings.Repeat("x", 80<<10))
	}))
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("got %d, want 431", resp.StatusCode)
	}
}

func TestAnIdleConnectionIsClosed(t *testing.T) {
	_, addr := serve(t, web.Options{IdleTimeout: 20 * time.Millisecond}, hello)
	conn, r := dial(t, addr)
	io.WriteString(conn, "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n")
	resp, err := http.ReadResponse(r, nil)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("got %v, %v, want 200", resp, err)
	}
	wantClosed(t, r)
}

func TestAConnectionBeyondTheLimitGetsAProblem(t *testing.T) {
	refused := make(chan net.Addr, 1)
	_, addr := serve(t, web.Options{MaxConnections: 1, OnRefused: func(a net.Addr) { refused <- a }}, hello)
	first, r := dial(t, addr)
	io.WriteString(first, "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if resp, err := http.ReadResponse(r, nil); err != nil || resp.StatusCode != 200 {
		t.Fatalf("first: got %v, %v, want 200", resp, err)
	}
	resp, body := do(t, request(t, "GET", "http://"+addr+"/hello", nil))
	wantProblem(t, resp, body, http.StatusServiceUnavailable, "overloaded", "no room")
	if a := <-refused; a == nil {
		t.Error("OnRefused: got nil, want the peer's address")
	}
	first.Close()
	for { // the server needs a moment to notice
		resp, _ := do(t, request(t, "GET", "http://"+addr+"/hello", nil))
		if resp.StatusCode == 200 {
			return
		}
		<-refused
	}
}

func TestHealthPathsAreAnsweredBeyondTheConnectionLimit(t *testing.T) {
	var answered atomic.Bool
	answered.Store(true)
	_, addr := serve(t, web.Options{Admit: func(net.Conn) (bool, bool) { return false, answered.Load() }, Always: []string{"/hello"}}, hello)
	conn, r := dial(t, addr)
	io.WriteString(conn, "GET /hello HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\nGET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n")
	resp, err := http.ReadResponse(r, nil)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("got %v and %v, want 200", resp, err)
	}
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "hello " {
		t.Errorf("got %q and %v, want hello", body, err)
	}
	wantClosed(t, r)
	for _, head := range []string{"GET /hello/you", "POST /hello", "GET /"} {
		conn, r := dial(t, addr)
		io.WriteString(conn, head+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
		if resp, err := http.ReadResponse(r, nil); err != nil || resp.StatusCode != 503 {
			t.Errorf("%s: got %v and %v, want 503", head, resp, err)
		}
	}
	answered.Store(false)
	_, r = dial(t, addr)
	wantClosed(t, r)
}

func TestAClientThatDoesNotReadIsDisconnected(t *testing.T) {
	ended := make(chan error, 1)
	_, addr := serve(t, web.Options{WriteTimeout: 50 * time.Millisecond}, func(s *web.Server) {
		s.Router().Get("/flood", func(w http.ResponseWriter, _ *http.Request) {
			p := make([]byte, 1<<20)
			for {
				if _, err := w.Write(p); err != nil {
					ended <- err
					return
				}
			}
		})
	})
	conn, _ := dial(t, addr)
	io.WriteString(conn, "GET /flood HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if err := <-ended; !isTimeout(err) {
		t.Errorf("Write: got %v, want a timeout", err)
	}
}

// A client that has not read for too long gets nothing more, above all no end: it would take that for
// a part of what is missing.
func TestAStreamThatWasCutGetsNoEnd(t *testing.T) {
	over := make(chan error)
	s := web.New(web.Options{WriteTimeout: 50 * time.Millisecond})
	s.Router().Get("/stream", func(w http.ResponseWriter, _ *http.Request) {
		rc := http.NewResponseController(w)
		err := rc.Flush()
		for err == nil {
			if _, err = w.Write(bytes.Repeat([]byte("x"), 20000)); err == nil {
				err = rc.Flush()
			}
		}
		over <- err
	})
	conn, _ := dial(t, serveOn(t, s, listen(t)))
	if _, err := io.WriteString(conn, "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := <-over; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v, want that the client reads too slowly", err)
	}
	all, _ := io.ReadAll(conn) // it may be reset
	if bytes.HasSuffix(all, []byte("0\r\n\r\n")) {
		t.Errorf("got an end behind %d bytes, want none", len(all))
	}
}

// pipes is a listener whose connections have no buffers: what is written was read.
type pipes struct {
	conns  chan net.Conn
	closed <-chan struct{}
	close  context.CancelFunc
}

func (p pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }
func (p pipes) Close() error   { p.close(); return nil }

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func TestAClientThatReadsSlowlyGetsALongAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 1 << 20
		s := web.New(web.Options{})
		s.Router().Get("/long", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, size)) })
		l, served := pipes{conns: make(chan net.Conn, 1)}, make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		l.closed, l.close = ctx.Done(), cancel
		go func() { served <- s.Serve(l) }()
		ours, theirs := net.Pipe()
		l.conns <- theirs
		_, _ = io.WriteString(ours, "GET /long HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
		got := 0
		for p := make([]byte, 10<<10); ; time.Sleep(time.Second) {
			n, err := io.ReadFull(ours, p)
			if got += n; err != nil {
				break
			}
		}
		if got < size {
			t.Errorf("got %d bytes at 10 KB/s, want all %d", got, size)
		}
		_ = ours.Close()
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		<-served
	})
}

func TestAFullMemoryRefusesBodiesOnceTheyAreMuchOfIt(t *testing.T) {
	m := memory.New(1 << 20)
	held, answer := make(chan struct{}), make(chan struct{})
	_, addr := serve(t, web.Options{Memory: m}, func(s *web.Server) {
		s.Router().Post("/hold", func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			close(held)
			<-answer
		})
		s.Router().Post("/read", func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
	})
	post := func(path string, size int) *http.Request {
		return request(t, "POST", "http://"+addr+path, strings.NewReader(strings.Repeat("x", size)))
	}
	m.Take(memory.Logs, 1<<20)
	if resp, _ := do(t, post("/read", 10)); resp.StatusCode != http.StatusOK {
		t.Errorf("a small body while tasks fill the memory: got %d, want 200", resp.StatusCode)
	}
	m.Take(memory.Logs, -1<<20)
	first := make(chan int)
	go func() {
		resp, _ := do(t, post("/hold", 300<<10))
		first <- resp.StatusCode
	}()
	<-held
	if got := m.HeldAs(memory.Bodies); got < 290<<10 {
		t.Errorf("got %d bytes of bodies held, want the 300 KiB that are not answered", got)
	}
	m.Take(memory.Logs, 1<<20)
	resp, body := do(t, post("/read", 10))
	wantProblem(t, resp, body, http.StatusServiceUnavailable, "overloaded", "limits.memory")
	if got := resp.Header.Get("Retry-After"); got != "1" {
		t.Errorf("got Retry-After %q, want 1", got)
	}
	close(answer)
	if got := <-first; got != http.StatusOK {
		t.Errorf("the request that was read: got %d, want 200", got)
	}
	ctx := testContext(t)
	for m.HeldAs(memory.Bodies) != 0 { // the handler returns after its answer
		if ctx.Err() != nil {
			t.Fatalf("got %d bytes of bodies held after their answers, want none", m.HeldAs(memory.Bodies))
		}
		runtime.Gosched()
	}
}
