package web_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/transports/web"
)

func TestEventsAreWrittenAsBrowsersReadThem(t *testing.T) {
	for _, c := range []struct{ event, id, data, want string }{
		{"", "", "hello", "data: hello\n\n"},
		{"text", "7", "hello", "event: text\nid: 7\ndata: hello\n\n"},
		{"", "", "", "data: \n\n"},
		{"", "", "one\ntwo", "data: one\ndata: two\n\n"},
		{"", "", "one\r\ntwo\rthree\n", "data: one\ndata: two\ndata: three\ndata: \n\n"},
		{"", "", "data: not mine\n\nid: 9", "data: data: not mine\ndata: \ndata: id: 9\n\n"},
	} {
		rec := httptest.NewRecorder()
		s, err := web.NewSSE(rec, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Send(c.event, c.id, []byte(c.data)); err != nil {
			t.Errorf("Send %q: got %v, want nil", c.data, err)
		}
		if got := rec.Body.String(); got != c.want {
			t.Errorf("Send %q: got %q, want %q", c.data, got, c.want)
		}
	}
}

func TestAnEventCannotBeForgedThroughItsTypeOrID(t *testing.T) {
	rec := httptest.NewRecorder()
	s, err := web.NewSSE(rec, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"a\nb", "a\rb", "a\x00b"} {
		if s.Send(bad, "", nil) == nil || s.Send("", bad, nil) == nil {
			t.Errorf("%q: got nil, want an error", bad)
		}
	}
	if got := rec.Body.String(); got != "" {
		t.Errorf("got %q, want nothing written", got)
	}
	if err := s.Comment("ping\npong"); err != nil || rec.Body.String() != ": ping\n: pong\n\n" {
		t.Errorf("Comment: got %q, %v, want two lines of comment", rec.Body.String(), err)
	}
}

func TestALineOfJSONStaysOneLine(t *testing.T) {
	rec := httptest.NewRecorder()
	n, err := web.NewNDJSON(rec, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Send([]byte("{\n}")); err == nil {
		t.Error("a value on two lines: got nil, want an error")
	}
	n.Send([]byte(`{"a":1}`))
	n.Send([]byte(`{"a":2}`))
	if got, want := rec.Body.String(), "{\"a\":1}\n{\"a\":2}\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := rec.Header().Get("Content-Type"); got != "application/x-ndjson" {
		t.Errorf("content type: got %q, want application/x-ndjson", got)
	}
}

func TestEveryEventLeavesAtOnce(t *testing.T) {
	next := make(chan string)
	_, addr := serve(t, web.Options{}, func(s *web.Server) {
		s.Router().Get("/events", func(w http.ResponseWriter, r *http.Request) {
			events, err := web.NewSSE(w, r)
			if err != nil {
				t.Error(err)
			}
			for text := range next {
				events.Send("", "", []byte(text))
			}
		})
	})
	resp, err := client(t).Do(request(t, "GET", "http://"+addr+"/events", nil))
	if err != nil {
		t.Fatal(err) // the head comes before the first event
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("content type: got %q, want text/event-stream", got)
	}
	lines := bufio.NewScanner(resp.Body)
	for _, text := range []string{"one", "two", "three"} {
		next <- text
		lines.Scan()
		if got, want := lines.Text(), "data: "+text; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		lines.Scan()
	}
	close(next)
}

func TestEventsFromSeveralGoroutinesAreNotTorn(t *testing.T) {
	rec := httptest.NewRecorder()
	s, err := web.NewSSE(rec, nil)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 100 {
				s.Send("", "", bytes.Repeat([]byte{'a' + byte(i)}, 50))
				s.Comment("ping")
			}
		})
	}
	wg.Wait()
	events := 0
	for _, e := range strings.SplitAfter(rec.Body.String(), "\n\n") {
		if e == "" || e == ": ping\n\n" {
			continue
		}
		events++
		if want := fmt.Sprintf("data: %s\n\n", strings.Repeat(e[6:7], 50)); e != want {
			t.Errorf("got %q, want %q", e, want)
		}
	}
	if events != 800 {
		t.Errorf("got %d events, want 800", events)
	}
}

func TestAReaderThatStallsIsGivenUp(t *testing.T) {
	errs := make(chan error, 2)
	_, addr := serve(t, web.Options{}, func(s *web.Server) {
		s.Router().Get("/events", func(w http.ResponseWriter, r *http.Request) {
			events, err := web.NewSSE(w, r)
			if err != nil {
				t.Error(err)
			}
			events.SetStall(50 * time.Millisecond)
			for err == nil {
				err = events.Send("", "", make([]byte, 1<<20))
			}
			errs <- err
			errs <- events.Comment("anybody?")
		})
	})
	conn, _ := dial(t, addr)
	io.WriteString(conn, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if err := <-errs; !isTimeout(err) {
		t.Errorf("Send: got %v, want a timeout", err)
	}
	if err := <-errs; !isTimeout(err) {
		t.Errorf("after that: got %v, want the same error", err)
	}
}

// blunt is a ResponseWriter that cannot flush.
type blunt struct{ http.ResponseWriter }

func TestAStreamNeedsAWriterThatFlushes(t *testing.T) {
	if _, err := web.NewSSE(blunt{httptest.NewRecorder()}, nil); err == nil {
		t.Error("NewSSE: got nil, want an error")
	}
	if _, err := web.NewNDJSON(blunt{httptest.NewRecorder()}, nil); err == nil {
		t.Error("NewNDJSON: got nil, want an error")
	}
}
