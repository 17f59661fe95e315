package ws_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/transports/ws"
)

func TestMessagesPassBothWays(t *testing.T) {
	server, client := pair(t, ws.AcceptOptions{}, ws.DialOptions{})
	for _, m := range []string{"hello", "", strings.Repeat("é", 100_000)} {
		if err := client.Send(t.Context(), []byte(m)); err != nil {
			t.Fatal(err)
		}
		if got, err := receive(server); got != m || err != nil {
			t.Errorf("at the server: got %d bytes and %v, want %d", len(got), err, len(m))
		}
		if err := server.Send(t.Context(), []byte(m)); err != nil {
			t.Fatal(err)
		}
		if got, err := receive(client); got != m || err != nil {
			t.Errorf("at the client: got %d bytes and %v, want %d", len(got), err, len(m))
		}
	}
}

func TestAForeignWebPageCannotConnectToALocalHub(t *testing.T) {
	for _, tt := range []struct {
		name    string
		host    string
		origin  string
		opts    ws.AcceptOptions
		refused bool
	}{
		{name: "a program"},
		{name: "a program that asks for localhost", host: "localhost:8080"},
		{name: "a program that asks for ::1", host: "[::1]:8080"},
		{name: "a page of the hub itself", host: "localhost:8080", origin: "http://localhost:8080"},
		{name: "a foreign page", host: "localhost:8080", origin: "https://evil.example", refused: true},
		{name: "a page of another port", host: "localhost:8080", origin: "http://localhost:3000", refused: true},
		{name: "a page from a file", host: "localhost:8080", origin: "null", refused: true},
		{name: "a page whose name was rebound", host: "evil.example:8080", origin: "http://evil.example:8080", refused: true},
		{name: "a program under a rebound name", host: "evil.example", refused: true},
		{name: "an allowed page", host: "localhost:8080", origin: "http://localhost:3000",
			opts: ws.AcceptOptions{Origins: []string{"localhost:*"}}},
		{name: "an allowed host", host: "hub.example:8080", opts: ws.AcceptOptions{Hosts: []string{"*.example"}}},
		{name: "a host that is not in the list", host: "localhost:8080",
			opts: ws.AcceptOptions{Hosts: []string{"*.example"}}, refused: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url, conns := listen(t, tt.opts)
			h := http.Header{}
			if tt.origin != "" {
				h.Set("Origin", tt.origin)
			}
			c, err := ws.Dial(t.Context(), url, ws.DialOptions{Header: h, Client: asHost(tt.host)})
			if tt.refused {
				var he *ws.HandshakeError
				if !errors.As(err, &he) || he.Status != http.StatusForbidden || he.Text == "" {
					t.Errorf("Dial: got %v, want 403 with a reason", err)
				}
				return
			}
			if err != nil {
				t.Fatalf("Dial: got %v, want it accepted", err)
			}
			closeBoth(c, <-conns)
		})
	}
}

// asHost returns a client that sends another Host than it connects to.
func asHost(host string) *http.Client {
	return &http.Client{Transport: hostTransport{host}}
}

type hostTransport struct{ host string }

func (n hostTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if n.host != "" {
		r.Host = n.host
	}
	return (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
}

func TestTheResponseHasTheHeadersAndTheFirstSubprotocol(t *testing.T) {
	opts := ws.AcceptOptions{Header: http.Header{"X-Connection-Id": {"c-1"}}, EchoSubprotocol: true}
	var got http.Header
	client := &http.Client{Transport: headerRecorder{&got}}
	server, c := pair(t, opts, ws.DialOptions{Client: client, Subprotocols: []string{"pi.v2", "pi.v1"}})
	if id := got.Get("X-Connection-Id"); id != "c-1" {
		t.Errorf("X-Connection-Id: got %q, want c-1", id)
	}
	if c.Subprotocol() != "pi.v2" || server.Subprotocol() != "pi.v2" {
		t.Errorf("subprotocol: got %q and %q, want pi.v2 at both ends", c.Subprotocol(), server.Subprotocol())
	}
	if ext := got.Get("Sec-WebSocket-Extensions"); ext != "" {
		t.Errorf("extensions: got %q, want none", ext)
	}
}

type headerRecorder struct{ header *http.Header }

func (s headerRecorder) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Sec-WebSocket-Extensions", "permessage-deflate")
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		*s.header = resp.Header
	}
	return resp, err
}

func TestASubprotocolIsNotEchoedUnlessAsked(t *testing.T) {
	_, c := pair(t, ws.AcceptOptions{}, ws.DialOptions{Subprotocols: []string{"pi.v2"}})
	if got := c.Subprotocol(); got != "" {
		t.Errorf("subprotocol: got %q, want none", got)
	}
}

func TestAPlainRequestIsAskedToUpgrade(t *testing.T) {
	w := httptest.NewRecorder()
	if _, err := ws.Accept(w, httptest.NewRequest(http.MethodGet, "/", nil), ws.AcceptOptions{}); err == nil {
		t.Error("Accept: got nil, want an error")
	}
	if w.Code != http.StatusUpgradeRequired || w.Body.String() != "Upgrade Required" {
		t.Errorf("answer: got %d %q, want 426 and Upgrade Required", w.Code, w.Body)
	}
	if got := w.Header().Get("Content-Type"); !strings.HasPrefix(got, "text/plain") {
		t.Errorf("content type: got %q, want text/plain", got)
	}
}

func TestFramesSentWithTheRequestAreNotLost(t *testing.T) {
	for _, size := range []int{1, 600, 3000, 50_000} {
		url, conns := listen(t, ws.AcceptOptions{})
		m := strings.Repeat("x", size)
		rawDial(t, url, frame(text, m), frame(text, "next"))
		server := <-conns
		for _, want := range []string{m, "next"} {
			if got, err := receive(server); got != want {
				t.Errorf("a frame of %d bytes sent early: got %d bytes and %v, want the frame", len(want), len(got), err)
			}
		}
		closeBoth(server, server)
	}
}

func TestDialReturnsTheResponseOfAServerWithoutWebSocket(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	_, err := ws.Dial(t.Context(), srv.URL, ws.DialOptions{Client: asHost("")})
	var he *ws.HandshakeError
	if !errors.As(err, &he) || he.Status != http.StatusNotFound || he.Text != "404 page not found" {
		t.Errorf("Dial: got %v, want 404 page not found", err)
	}
}

func TestTheWantedSubprotocolIsAcceptedIfItIsOffered(t *testing.T) {
	for _, tt := range []struct{ wanted, got string }{{"dragoman", "dragoman"}, {"dragoman.token.YQ", "dragoman.token.YQ"}, {"other", ""}} {
		_, c := pair(t, ws.AcceptOptions{Subprotocol: tt.wanted, EchoSubprotocol: true}, ws.DialOptions{Subprotocols: []string{"dragoman.token.YQ", "dragoman"}})
		if got := c.Subprotocol(); got != tt.got {
			t.Errorf("%s: got %q, want %q", tt.wanted, got, tt.got)
		}
	}
}

func TestAPageOfAnotherSiteIsRefusedWithoutAnOriginToo(t *testing.T) {
	for _, site := range []string{"cross-site", "same-site"} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Upgrade", "websocket")
		r.Header.Set("Sec-Fetch-Site", site)
		if _, err := ws.Accept(w, r, ws.AcceptOptions{}); err == nil || w.Code != http.StatusForbidden {
			t.Errorf("%s: got %d, want 403", site, w.Code)
		}
	}
}
