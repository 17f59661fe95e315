package web_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/dragoman-hub/dragoman/transports/web"
)

// A web page must not use a local hub: a page whose name was rebound to 127.0.0.1 is
// recognized by its Host, any other page by its Origin.
func TestAWebPageCannotDriveALocalHub(t *testing.T) {
	denied := make(chan string, 1)
	_, addr := serve(t, web.Options{
		HostsSetting: "http.hosts", OriginsSetting: "http.origins",
		Hosts:    []string{"Hub.example.com", "tunnel.example:8443"},
		Origins:  []string{"https://console.example.com/"},
		OnDenied: func(_ *http.Request, status int, detail string) { denied <- fmt.Sprint(status, " ", detail) },
	}, hello)
	_, port, _ := net.SplitHostPort(addr)
	for _, c := range []struct {
		host, origin string
		status       int
		detail       string
	}{
		{host: "127.0.0.1:" + port, status: 200},
		{host: "localhost:" + port, status: 200},
		{host: "LOCALHOST", status: 200},
		{host: "localhost.", status: 200},
		{host: "[::1]:" + port, status: 200},
		{host: "127.0.0.3:" + port, status: 200}, // another loopback address
		{host: "localhost:9", status: 200},       // through a forwarded port
		{host: "hub.example.com", status: 200},
		{host: "HUB.EXAMPLE.COM:443", status: 200},
		{host: "tunnel.example", status: 200},
		{host: "evil.example:" + port, status: 421, detail: `"evil.example"; if it should, add that name to http.hosts`},
		{host: "127.0.0.1.evil.example", status: 421, detail: "127.0.0.1.evil.example"},
		{host: "localhost.evil.example", status: 421, detail: "localhost.evil.example"},
		{host: "192.168.0.1", status: 421, detail: "192.168.0.1"},
		{host: "0.0.0.0:" + port, status: 421, detail: "0.0.0.0"},

		{host: "localhost:8080", origin: "http://localhost:8080", status: 200},
		{host: "hub.example.com", origin: "https://hub.example.com", status: 200}, // behind a proxy that terminates TLS
		{host: "localhost", origin: "http://localhost:80", status: 200},
		{host: "localhost:8080", origin: "https://console.example.com", status: 200},
		{host: "localhost:8080", origin: "HTTPS://CONSOLE.example.com", status: 200},
		{host: "localhost:8080", origin: "http://localhost:3000", status: 403, detail: `"http://localhost:3000" may not call this server; if they should, add that origin to http.origins`},
		{host: "localhost:8080", origin: "http://127.0.0.1:8080", status: 403, detail: "127.0.0.1"},
		{host: "localhost:8080", origin: "https://evil.example", status: 403, detail: "evil.example"},
		{host: "localhost:8080", origin: "https://console.example.com.evil.example", status: 403, detail: "evil.example"},
		{host: "localhost:8080", origin: "null", status: 403, detail: "null"},
		{host: "localhost:8080", origin: "file://localhost:8080", status: 403, detail: "file"},
		{host: "localhost:8080", origin: "%", status: 403, detail: "%"},
		{host: "evil.example", origin: "http://evil.example", status: 421, detail: "evil.example"},
	} {
		for _, upgrade := range []bool{false, true} {
			resp, body := do(t, request(t, "POST", "http://"+addr+"/hello", nil, func(r *http.Request) {
				r.Host = c.host
				if c.origin != "" {
					r.Header.Set("Origin", c.origin)
				}
				if upgrade {
					r.Header.Set("Connection", "Upgrade")
					r.Header.Set("Upgrade", "websocket")
				}
			}))
			name := fmt.Sprintf("host %s, origin %s, upgrade %v", c.host, c.origin, upgrade)
			if c.status == 200 {
				if resp.StatusCode != 200 || body != "hello " {
					t.Errorf("%s: got %d %q, want 200 and the greeting", name, resp.StatusCode, body)
				}
				continue
			}
			t.Run(name, func(t *testing.T) { wantProblem(t, resp, body, c.status, "not_authorized", c.detail) })
			if got := <-denied; !strings.HasPrefix(got, fmt.Sprint(c.status)) || !strings.Contains(got, c.detail) {
				t.Errorf("%s: OnDenied: got %q, want %d and %q", name, got, c.status, c.detail)
			}
		}
	}
}

func TestARequestMustHaveExactlyOneHost(t *testing.T) {
	_, addr := serve(t, web.Options{}, hello)
	for _, head := range []string{
		"GET /hello HTTP/1.0\r\n\r\n",
		"GET /hello HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
		"GET http://evil.example/hello HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /hello HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nOrigin: https://evil.example\r\n\r\n",
	} {
		conn, r := dial(t, addr)
		io.WriteString(conn, head)
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode < 400 {
			t.Errorf("%q: got %d, want a refusal", head, resp.StatusCode)
		}
		conn.Close()
	}
}

func TestPagesOfAConfiguredOriginGetCORSHeaders(t *testing.T) {
	const page = "https://console.example.com"
	_, addr := serve(t, web.Options{Origins: []string{page}}, hello)
	resp, _ := do(t, request(t, "OPTIONS", "http://"+addr+"/hello", nil, func(r *http.Request) {
		r.Header.Set("Origin", page)
		r.Header.Set("Access-Control-Request-Method", "POST")
		r.Header.Set("Access-Control-Request-Headers", "content-type,authorization")
	}))
	for header, want := range map[string]string{
		"Access-Control-Allow-Origin":  page,
		"Access-Control-Allow-Methods": "POST",
		"Access-Control-Allow-Headers": "content-type,authorization",
		"Vary":                         "Origin",
	} {
		if got := resp.Header.Get(header); got != want {
			t.Errorf("preflight: %s: got %q, want %q", header, got, want)
		}
	}
	if resp.StatusCode != http.StatusNoContent {
		t.Errorf("preflight: got %d, want 204", resp.StatusCode)
	}
	resp, body := do(t, request(t, "POST", "http://"+addr+"/hello", strings.NewReader("console"), func(r *http.Request) {
		r.Header.Set("Origin", page)
	}))
	if got := resp.Header.Get("Access-Control-Allow-Origin"); got != page || body != "hello console" {
		t.Errorf("got origin %q and body %q, want %q and the greeting", got, body, page)
	}
}

func TestAWebSocketIsAcceptedOnlyFromTheSameOrigin(t *testing.T) {
	_, addr := serve(t, web.Options{}, func(s *web.Server) {
		s.Router().Get("/ws", func(w http.ResponseWriter, r *http.Request) {
			c, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
			if err != nil {
				return
			}
			c.Write(r.Context(), websocket.MessageText, []byte("welcome"))
			c.Close(websocket.StatusNormalClosure, "")
		})
	})
	for origin, allowed := range map[string]bool{"": true, "http://" + addr: true, "https://evil.example": false} {
		h := http.Header{}
		if origin != "" {
			h.Set("Origin", origin)
		}
		c, resp, err := websocket.Dial(testContext(t), "ws://"+addr+"/ws", &websocket.DialOptions{HTTPHeader: h, HTTPClient: client(t)})
		if !allowed {
			if err == nil || resp.StatusCode != http.StatusForbidden {
				t.Errorf("origin %q: got %v, want 403", origin, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("origin %q: got %v, want a WebSocket", origin, err)
		}
		if _, got, err := c.Read(testContext(t)); err != nil || string(got) != "welcome" {
			t.Errorf("origin %q: got %q, %v, want the welcome", origin, got, err)
		}
		c.CloseNow()
	}
}

// fakeLocal is a listener whose connections have another local address.
type fakeLocal struct {
	net.Listener
	local net.Addr
}

type fakeLocalConn struct {
	net.Conn
	local net.Addr
}

func (e fakeLocal) Accept() (net.Conn, error) {
	conn, err := e.Listener.Accept()
	return fakeLocalConn{conn, e.local}, err
}

func (c fakeLocalConn) LocalAddr() net.Addr { return c.local }

func TestOutsideLoopbackAnyHostIsAllowedUnlessSomeAreConfigured(t *testing.T) {
	for _, c := range []struct {
		hosts []string
		host  string
		want  int
	}{
		{nil, "hub.lan", 200},
		{[]string{"hub.example.com"}, "hub.example.com", 200},
		{[]string{"hub.example.com"}, "192.0.2.7:8080", 200},
		{[]string{"hub.example.com"}, "evil.example", 421},
		{[]string{"hub.example.com"}, "localhost", 421},
	} {
		s := web.New(web.Options{Hosts: c.hosts})
		hello(s)
		addr := serveOn(t, s, fakeLocal{listen(t), &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 8080}})
		resp, _ := do(t, request(t, "GET", "http://"+addr+"/hello", nil, func(r *http.Request) { r.Host = c.host }))
		if resp.StatusCode != c.want {
			t.Errorf("hosts %v, host %s: got %d, want %d", c.hosts, c.host, resp.StatusCode, c.want)
		}
	}
}

func TestAUnixSocketNeedsNoHostCheck(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hub.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := web.New(web.Options{})
	hello(s)
	serveOn(t, s, l)
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "GET /hello HTTP/1.1\r\nHost: anything\r\nConnection: close\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != 200 {
		t.Errorf("got %v, %v, want 200", resp, err)
	}
}
