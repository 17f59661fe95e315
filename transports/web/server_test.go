package web_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/transports/web"
)

func TestAPanicEndsOnlyItsRequest(t *testing.T) {
	panics := make(chan string, 1)
	_, addr := serve(t, web.Options{
		OnPanic: func(r *http.Request, v any, stack []byte) {
			if !strings.Contains(string(stack), "server_test.go") {
				t.Errorf("stack: got\n%s\nwant one that shows the handler", stack)
			}
			panics <- r.URL.Path + " " + v.(string)
		},
	}, func(s *web.Server) {
		hello(s)
		s.Router().Get("/early", func(http.ResponseWriter, *http.Request) { panic("oops") })
		s.Router().Get("/late", func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "half an ans")
			w.(http.Flusher).Flush()
			panic("ouch")
		})
	})
	resp, body := do(t, request(t, "GET", "http://"+addr+"/early", nil))
	wantProblem(t, resp, body, http.StatusInternalServerError, "internal", "failed")
	if strings.Contains(body, "oops") {
		t.Errorf("got %s, want no detail of the panic", body)
	}
	if got, want := <-panics, "/early oops"; got != want {
		t.Errorf("OnPanic: got %q, want %q", got, want)
	}
	resp, err := client(t).Do(request(t, "GET", "http://"+addr+"/late", nil))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("half an answer: got %q and no error, want an error", got)
	}
	resp.Body.Close()
	if got, want := <-panics, "/late ouch"; got != want {
		t.Errorf("OnPanic: got %q, want %q", got, want)
	}
	if _, body := do(t, request(t, "GET", "http://"+addr+"/hello", nil)); body != "hello " {
		t.Errorf("the next request: got %q, want the greeting", body)
	}
}

func TestUnknownRoutesGetAProblem(t *testing.T) {
	_, addr := serve(t, web.Options{}, func(s *web.Server) {
		s.Router().Post("/tasks", func(http.ResponseWriter, *http.Request) {})
	})
	resp, body := do(t, request(t, "GET", "http://"+addr+"/nowhere", nil))
	wantProblem(t, resp, body, http.StatusNotFound, "unsupported", "/nowhere")
	resp, body = do(t, request(t, "GET", "http://"+addr+"/tasks", nil))
	wantProblem(t, resp, body, http.StatusMethodNotAllowed, "unsupported", "GET is not possible at /tasks: use POST")
	if got := resp.Header.Get("Allow"); got != "POST, OPTIONS" {
		t.Errorf("Allow: got %q, want POST, OPTIONS", got)
	}
}

func TestStopWaitsForRunningRequests(t *testing.T) {
	started, finish := make(chan struct{}), make(chan struct{})
	s, addr := serve(t, web.Options{}, func(s *web.Server) {
		s.Router().Get("/slow", func(w http.ResponseWriter, r *http.Request) {
			close(started)
			<-finish
			if r.Context().Err() != nil {
				t.Errorf("context: got %v, want nil", r.Context().Err())
			}
			io.WriteString(w, "done")
		})
	})
	var body string
	requested := async(func() { _, body = do(t, request(t, "GET", "http://"+addr+"/slow", nil)) })
	<-started
	var err error
	stopped := async(func() { err = s.Stop(testContext(t)) })
	for { // until the server has begun to stop
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			break
		}
		conn.Close()
	}
	close(finish)
	within(t, requested, "the answer")
	within(t, stopped, "Stop to return")
	if body != "done" || err != nil {
		t.Errorf("got %q and Stop %v, want done and nil", body, err)
	}
}

func TestStopEndsAStreamOfEvents(t *testing.T) {
	s, addr := serve(t, web.Options{}, func(s *web.Server) {
		s.Router().Get("/events", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
				return
			}
			<-r.Context().Done()
			io.WriteString(w, "event: bye\ndata: resume with your cursor\n\n")
		})
	})
	resp, err := client(t).Do(request(t, "GET", "http://"+addr+"/events", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := s.Stop(testContext(t)); err != nil {
		t.Errorf("Stop: got %v, want nil", err)
	}
	got, err := io.ReadAll(resp.Body)
	if want := "event: bye\ndata: resume with your cursor\n\n"; string(got) != want || err != nil {
		t.Errorf("got %q, %v, want %q and a clean end", got, err, want)
	}
}

func TestStopLeavesHijackedConnectionsOpen(t *testing.T) {
	hijacked, ended := make(chan net.Conn, 1), make(chan struct{})
	s, addr := serve(t, web.Options{}, func(s *web.Server) {
		s.Router().Get("/ws", func(w http.ResponseWriter, _ *http.Request) {
			defer close(ended)
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			hijacked <- conn
			io.Copy(conn, conn) // until the client disconnects
			conn.Close()
		})
	})
	conn, r := dial(t, addr)
	io.WriteString(conn, "GET /ws HTTP/1.1\r\nHost: localhost\r\n\r\n")
	<-hijacked
	if err := s.Stop(testContext(t)); err != nil {
		t.Errorf("Stop: got %v, want nil", err)
	}
	io.WriteString(conn, "ping\n")
	if got, err := r.ReadString('\n'); got != "ping\n" {
		t.Errorf("got %q, %v, want an echo", got, err)
	}
	conn.Close()
	within(t, ended, "the owner to end")
}

func TestStopClosesConnectionsThatDoNotEndInTime(t *testing.T) {
	started := make(chan struct{})
	s, addr := serve(t, web.Options{}, func(s *web.Server) {
		s.Router().Get("/blocked", func(_ http.ResponseWriter, r *http.Request) {
			close(started)
			<-r.Context().Done()
		})
	})
	conn, r := dial(t, addr)
	io.WriteString(conn, "GET /blocked HTTP/1.1\r\nHost: localhost\r\n\r\n")
	<-started
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Stop(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Stop: got %v, want the context's error", err)
	}
	wantClosed(t, r)
}

func TestASilentConnectionDoesNotDelayStop(t *testing.T) {
	s, addr := serve(t, web.Options{}, hello)
	_, r := dial(t, addr)
	do(t, request(t, "GET", "http://"+addr+"/hello", nil)) // so that the silent one was accepted before
	if err := s.Stop(testContext(t)); err != nil {
		t.Errorf("Stop: got %v, want nil", err)
	}
	wantClosed(t, r)
}

func TestTheServerCanBeEncrypted(t *testing.T) {
	cert := httptest.NewTLSServer(nil) // for its certificate
	defer cert.Close()
	roots := x509.NewCertPool()
	roots.AddCert(cert.Certificate())
	_, addr := serve(t, web.Options{TLS: &tls.Config{Certificates: cert.TLS.Certificates}}, hello)
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr}).Do(request(t, "GET", "https://"+addr+"/hello", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, _ := io.ReadAll(resp.Body); string(got) != "hello " {
		t.Errorf("got %q, want the greeting", got)
	}
}
