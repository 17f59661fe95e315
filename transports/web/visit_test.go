package web_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/transports/web"
)

// door has a route for those with a token, one that judges itself, and one for all.
func door(release <-chan struct{}) func(*web.Server) {
	guarded := func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "" {
			w.WriteHeader(http.StatusUnauthorized)
			return false
		}
		return true
	}
	return func(s *web.Server) {
		s.Router().HandleFunc("/guarded", func(w http.ResponseWriter, r *http.Request) {
			if guarded(w, r) {
				web.Authenticated(r)
				io.WriteString(w, "ok")
			}
		})
		s.Router().Handle("/own", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if guarded(w, r) {
				<-release
				web.Authenticated(r)
				io.WriteString(w, "ok")
			}
		}))
		s.Router().HandleFunc("/open", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") })
	}
}

// get sends a request on a connection and returns the status.
func get(t *testing.T, conn net.Conn, r *bufio.Reader, path, token string) int {
	t.Helper()
	head := "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n"
	if token != "" {
		head += "Authorization: " + token + "\r\n"
	}
	if _, err := fmt.Fprint(conn, head+"\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatalf("%s: got %v, want an answer", path, err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return resp.StatusCode
}

func TestIdleConnectionsWithoutATokenLockNobodyOut(t *testing.T) {
	var closed atomic.Int32
	_, addr := serve(t, web.Options{
		MaxConnections: 8, MaxUnauthenticated: 2, OnUnauthenticated: func(net.Addr) { closed.Add(1) },
	}, door(nil))
	var oldest []net.Conn
	for range 8 {
		conn, _ := dial(t, addr)
		oldest = append(oldest, conn)
	}
	conn, r := dial(t, addr)
	if got := get(t, conn, r, "/guarded", "yes"); got != http.StatusOK {
		t.Fatalf("with a token: got %d, want 200", got)
	}
	for _, conn := range oldest[:6] {
		wantClosed(t, conn)
	}
	for _, path := range []string{"/open", "/guarded", "/own"} {
		for range 8 {
			conn, r := dial(t, addr)
			get(t, conn, r, path, "")
		}
	}
	if got := get(t, conn, r, "/guarded", "yes"); got != http.StatusOK {
		t.Errorf("later on the same connection: got %d, want 200", got)
	}
	if got := closed.Load(); got < 6 {
		t.Errorf("got %d connections reported, want at least 6", got)
	}
}

func TestAConnectionHasToAuthenticateInTime(t *testing.T) {
	release, late := make(chan struct{}), make(chan struct{}, 8)
	_, addr := serve(t, web.Options{
		MaxUnauthenticated: 16, AuthTimeout: 100 * time.Millisecond, OnUnauthenticated: func(net.Addr) { late <- struct{}{} },
	}, door(release))
	own, ownReader := dial(t, addr) // its request takes longer than that
	answered := async(func() {
		if got := get(t, own, ownReader, "/own", "yes"); got != http.StatusOK {
			t.Errorf("a request that took longer: got %d, want 200", got)
		}
	})
	proven, provenReader := dial(t, addr)
	get(t, proven, provenReader, "/guarded", "yes")
	for _, path := range []string{"", "/open", "/guarded", "/own"} {
		conn, r := dial(t, addr)
		if path != "" {
			get(t, conn, r, path, "")
		}
		wantClosed(t, r)
		<-late
	}
	if got := get(t, proven, provenReader, "/open", ""); got != http.StatusOK {
		t.Errorf("a connection with a token: got %d, want 200", got)
	}
	close(release)
	<-answered
	if got := get(t, own, ownReader, "/open", ""); got != http.StatusOK {
		t.Errorf("after the request that took longer: got %d, want 200", got)
	}
}

// A link on another site opens a static page, and nothing else.
func TestALinkOnAnotherSiteOpensAPage(t *testing.T) {
	_, addr := serve(t, web.Options{Pages: []string{"/", "/files/"}}, func(s *web.Server) {
		s.Router().HandleFunc("/*", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) })
	})
	link := map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-User": "?1"}
	for _, tt := range []struct {
		method, path, header, value string
		want                        int
	}{
		{"GET", "/", "", "", 200},
		{"GET", "/files/app.js", "", "", 200},
		{"GET", "/files", "", "", 403},
		{"GET", "/v1/agents", "", "", 403},
		{"POST", "/", "", "", 403},
		{"GET", "/", "Sec-Fetch-Mode", "no-cors", 403},
		{"GET", "/", "Sec-Fetch-Mode", "", 403},
		{"GET", "/", "Sec-Fetch-Dest", "iframe", 403},
		{"GET", "/", "Sec-Fetch-Dest", "script", 403},
		{"GET", "/", "Origin", "https://evil.example.com", 403},
		{"GET", "/", "Origin", "null", 403},
	} {
		resp, _ := do(t, request(t, tt.method, "http://"+addr+tt.path, nil, func(r *http.Request) {
			for name, value := range link {
				r.Header.Set(name, value)
			}
			if tt.header != "" {
				if r.Header.Set(tt.header, tt.value); tt.value == "" {
					r.Header.Del(tt.header)
				}
			}
		}))
		if resp.StatusCode != tt.want {
			t.Errorf("%s %s with %s %q: got %d, want %d", tt.method, tt.path, tt.header, tt.value, resp.StatusCode, tt.want)
		}
	}
}

func TestRequestsOfOtherSitesArePassedToNoRoute(t *testing.T) {
	_, addr := serve(t, web.Options{Origins: []string{"https://console.example.com"}}, hello)
	for _, tt := range []struct {
		site, origin string
		want         int
	}{
		{"", "", 200},
		{"none", "", 200},
		{"same-origin", "", 200},
		{"same-origin", "http://" + addr, 200},
		{"cross-site", "", 403},
		{"same-site", "", 403},
		{"Cross-Site", "", 403},
		{"something-new", "", 403},
		{"same-site", "http://" + addr, 403},
		{"cross-site", "https://console.example.com", 200},
		{"cross-site", "https://other.example.com", 403},
	} {
		resp, body := do(t, request(t, http.MethodGet, "http://"+addr+"/hello", nil, func(r *http.Request) {
			if tt.site != "" {
				r.Header.Set("Sec-Fetch-Site", tt.site)
			}
			if tt.origin != "" {
				r.Header.Set("Origin", tt.origin)
			}
		}))
		if resp.StatusCode != tt.want {
			t.Errorf("Sec-Fetch-Site %q, Origin %q: got %d %s, want %d", tt.site, tt.origin, resp.StatusCode, body, tt.want)
		}
	}
}
