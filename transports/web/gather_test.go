package web_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/transports/web"
)

// countedListener counts the writes of its connections.
type countedListener struct {
	net.Listener
	writes atomic.Int64
}

func (l *countedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &countedConn{conn, l}, nil
}

type countedConn struct {
	net.Conn
	of *countedListener
}

func (c *countedConn) Write(p []byte) (int, error) {
	c.of.writes.Add(1)
	return c.Conn.Write(p)
}

// What a stream writes between two flushes is one write, whatever net/http makes of it; what is too
// much is a write for each piece.
func TestAStreamIsOneWriteForEachFlush(t *testing.T) {
	next, flushed := make(chan int), make(chan int64)
	l := &countedListener{Listener: listen(t)}
	s := web.New(web.Options{})
	s.Router().Get("/stream", func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).Flush() // the head
		for n := range next {
			before := l.writes.Load()
			for range 4 {
				if _, err := w.Write(bytes.Repeat([]byte("x"), n/4)); err != nil {
					t.Error(err)
				}
			}
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			flushed <- l.writes.Load() - before
		}
		_, _ = io.WriteString(w, "the end") // without a flush
	})
	addr := serveOn(t, s, l)
	resp, err := client(t).Get("http://" + addr + "/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for _, c := range []struct {
		bytes int
		most  int64
	}{{40, 1}, {400, 1}, {4000, 1}, {20000, 1}, {400000, 13}} {
		read := make(chan error)
		go func() {
			_, err := io.CopyN(io.Discard, resp.Body, int64(c.bytes))
			read <- err
		}()
		next <- c.bytes
		if got := <-flushed; got > c.most {
			t.Errorf("%d bytes: got %d writes, want at most %d", c.bytes, got, c.most)
		}
		if err := <-read; err != nil {
			t.Fatal(err)
		}
	}
	close(next)
	rest, err := io.ReadAll(resp.Body)
	if err != nil || string(rest) != "the end" {
		t.Errorf("got %q and %v at the end, want the end", rest, err)
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
	conn, err := net.Dial("tcp", serveOn(t, s, listen(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
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
