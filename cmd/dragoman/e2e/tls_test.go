package e2e

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
)

// certificate writes a certificate for a host, which is its own authority, and its key.
func certificate(t *testing.T, host string) (cert, key string) {
	t.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &own.PublicKey, own)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "hub.crt"), filepath.Join(dir, "hub.key")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// newTLSHub starts a hub that speaks TLS and has tokens.
func newTLSHub(t *testing.T, host string, principals ...string) (h *testHub, ca string) {
	t.Helper()
	h = newTestHub(t, func(c *config.Config) {
		c.TLS.Cert, c.TLS.Key = certificate(t, host)
		ca = c.TLS.Cert
		c.Auth.Tokens = tokensFile(t, principals...)
	})
	return h, ca
}

// tape is a proxy that records the bytes of all its connections.
type tape struct {
	addr string
	mu   sync.Mutex
	all  bytes.Buffer
}

// record puts a tape in front of an address until the test ends.
func record(t *testing.T, to string) *tape {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &tape{addr: l.Addr().String()}
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		l.Close()
		cancel()
		running.Wait()
	})
	running.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				near.Close()
				continue
			}
			cut := func() { near.Close(); far.Close() }
			context.AfterFunc(ctx, cut)
			for _, way := range [2][2]net.Conn{{near, far}, {far, near}} {
				running.Go(func() {
					defer cut()
					_, _ = io.Copy(io.MultiWriter(p, way[1]), way[0]) // until one end closes
				})
			}
		}
	})
	return p
}

// Write implements io.Writer.
func (p *tape) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all.Write(b)
}

// has reports whether a text passed.
func (p *tape) has(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return bytes.Contains(p.all.Bytes(), []byte(text))
}

// wantNone checks that bytes passed, and none of the texts, as they are or in base64.
func (p *tape) wantNone(t *testing.T, texts ...string) {
	t.Helper()
	if !p.has("\x16\x03\x01") { // how a client begins TLS
		t.Error("got no TLS on the wire, want some")
	}
	for _, text := range texts {
		for _, spelling := range []string{text, base64.StdEncoding.EncodeToString([]byte(text))} {
			if p.has(spelling) {
				t.Errorf("got %q on the wire in clear, want it encrypted", spelling)
			}
		}
	}
}

func TestNothingCrossesATLSListenerInClear(t *testing.T) {
	const question, answer = "is anybody reading along here", "nobody reads this but the asker"
	h, ca := newTLSHub(t, "127.0.0.1", "alice", "worker-secret-token")
	token := "worker-secret-token"
	overHTTP, overGRPC := record(t, h.service.Addresses().HTTP), record(t, h.service.Addresses().GRPC)
	at := client.Hub{URL: "https://" + overHTTP.addr, Named: "--hub", GRPC: overGRPC.addr, Token: token, CA: ca}
	for name, join := range service.Joins() {
		t.Run(name, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			joined, left := make(chan struct{}), make(chan error, 1)
			id := core.AgentID(token) // its own id
			go func() {
				left <- join(ctx, at, core.Card{ID: id, Name: string(id), Dialect: name, Features: core.FeatureStreaming}, func(_ context.Context, _ core.Request, say func(core.Body) error) error {
					return say(core.Text{Text: answer})
				}, func(client.AskFunc) { close(joined) }, h.log)
			}()
			select {
			case <-joined:
			case err := <-left:
				t.Fatalf("joining: got %v, want it to stay", err)
			}
			var task struct{ Result struct{ Text string } }
			asker := at
			asker.Token = "alice"
			if err := asker.Client().Post(t.Context(), "/v1/tasks?wait=true", client.TaskRequest{To: string(id), Intent: "ask", Content: question}, &task); err != nil {
				t.Errorf("asking: got %v, want an answer", err)
			}
			leave()
			<-left
			h.await(t, "left "+string(id))
		})
	}
	control := newTestHub(t, nil)
	overPlain := record(t, control.service.Addresses().HTTP)
	_ = client.Hub{URL: "http://" + overPlain.addr, Token: token}.Client().Post(t.Context(), "/v1/tasks", client.TaskRequest{To: "nobody", Intent: "ask", Content: question}, nil)
	for _, text := range []string{question, token} {
		if !overPlain.has(text) {
			t.Errorf("without TLS: got no %q on the wire, want the recording to find it", text)
		}
	}
	overHTTP.wantNone(t, question, answer, token, "Bearer", "/v1/tasks")
	overGRPC.wantNone(t, question, answer, token, "Bearer")
}

func TestTheCommandsReachAHubByTLS(t *testing.T) {
	h, ca := newTLSHub(t, "localhost", "root")
	_, port, _ := net.SplitHostPort(h.service.Addresses().HTTP)
	at := "https://localhost:" + port
	_, wrong := certificate(t, "localhost")
	for name, tt := range map[string]struct {
		args []string
		code int
		want string
	}{
		"trusted":          {[]string{"--hub", at, "--ca", ca}, command.ExitDone, ""},
		"no authority":     {[]string{"--hub", at}, command.ExitFailed, "name its authority with --ca or DRAGOMAN_CA"},
		"another host":     {[]string{"--hub", "https://127.0.0.1:" + port, "--ca", ca}, command.ExitFailed, "write the host that it names in --hub"},
		"no TLS":           {[]string{"--hub", "http://localhost:" + port}, command.ExitFailed, "speaks TLS: write https instead of http in --hub"},
		"no file":          {[]string{"--hub", at, "--ca", ca + "2"}, command.ExitUsage, "--ca (DRAGOMAN_CA): open " + ca + "2"},
		"no certificate":   {[]string{"--hub", at, "--ca", wrong}, command.ExitUsage, "no certificate is in it"},
		"beyond, in clear": {[]string{"--hub", "http://192.0.2.1:" + port}, command.ExitUsage, "the token would cross the network unencrypted to 192.0.2.1: use https in --hub, or add --insecure"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, stderr := run(t, append([]string{"agents", "--token", "root"}, tt.args...)...)
			if code != tt.code || !strings.Contains(stderr, tt.want) {
				t.Errorf("got %d %q, want %d and %q", code, stderr, tt.code, tt.want)
			}
		})
	}
	t.Setenv("DRAGOMAN_CA", ca)
	t.Setenv("DRAGOMAN_HUB", at)
	t.Setenv("DRAGOMAN_TOKEN", "root")
	if code, _, stderr := run(t, "agents"); code != command.ExitDone {
		t.Errorf("by variables: got %d %q, want %d", code, stderr, command.ExitDone)
	}
	plain := newTestHub(t, nil)
	if code, _, stderr := run(t, "agents", "--hub", strings.Replace(plain.url(), "http:", "https:", 1)); code == command.ExitDone || !strings.Contains(stderr, "speaks no TLS: write http instead of https in --hub") {
		t.Errorf("a hub without TLS: got %d %q, want what to write", code, stderr)
	}
}

func TestAnAgentFindsTheGRPCListenerOfItsHubByTLS(t *testing.T) {
	h, ca := newTLSHub(t, "localhost", "shout")
	_, port, _ := net.SplitHostPort(h.service.Addresses().HTTP)
	t.Setenv("DRAGOMAN_HUB", "https://localhost:"+port)
	t.Setenv("DRAGOMAN_CA", ca)
	t.Setenv("DRAGOMAN_TOKEN", "shout")
	ctx, leave := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		runWith(ctx, "", "agent", "--name", "shout", "--dialect", "coven", "--", "tr", "a-z", "A-Z")
	}()
	h.await(t, "joined shout")
	leave()
	<-done
}

func TestNoTokenIsSentToAGRPCAddressInClear(t *testing.T) {
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"addresses":{"grpc":"192.0.2.1:50051"}}`)
	}))
	defer hub.Close()
	t.Setenv("DRAGOMAN_HUB", hub.URL)
	t.Setenv("DRAGOMAN_TOKEN", "secret")
	code, _, stderr := run(t, "agent", "--name", "shout", "--dialect", "coven", "--", "cat")
	if code != command.ExitUsage || !strings.Contains(stderr, "the token would cross the network unencrypted to 192.0.2.1") {
		t.Errorf("got %d %q, want it refused", code, stderr)
	}
}

func TestNoTokenFollowsARedirect(t *testing.T) {
	var got string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("Authorization") }))
	defer other.Close()
	hub := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer hub.Close()
	code, _, stderr := run(t, "agents", "--hub", hub.URL, "--token", "secret")
	if code == command.ExitDone || got != "" || !strings.Contains(stderr, "is not a hub") {
		t.Errorf("got %d %q and the token %q elsewhere, want an error and none", code, stderr, got)
	}
}

func TestABrowserBringsItsTokenAsASubprotocol(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) { c.Auth.Tokens = tokensFile(t, "alice") })
	own := "dragoman.token." + base64.RawURLEncoding.EncodeToString([]byte("alice"))
	wrong := "dragoman.token." + base64.RawURLEncoding.EncodeToString([]byte("eve"))
	for _, tt := range []struct {
		offered []string
		want    string // "" for refused
	}{
		{[]string{own}, own},
		{[]string{own, "dragoman"}, "dragoman"},
		{[]string{"dragoman", own}, "dragoman"},
		{[]string{wrong, "dragoman"}, ""},
		{[]string{"dragoman"}, ""},
	} {
		for _, url := range []string{h.url() + "/ws/native", h.url() + "/ws/acp", h.url() + "/ws/agent", "http://" + h.service.Addresses().Pi} {
			conn, resp, err := websocket.Dial(t.Context(), url, &websocket.DialOptions{Subprotocols: tt.offered, HTTPHeader: http.Header{"Sec-Fetch-Site": {"same-origin"}}})
			got := ""
			if err == nil {
				got = conn.Subprotocol()
				conn.CloseNow()
			} else if resp == nil || resp.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s %v: got %v, want 401", url, tt.offered, err)
			}
			if got != tt.want {
				t.Errorf("%s %v: got %q, want %q", url, tt.offered, got, tt.want)
			}
		}
	}
}

func TestAPageOfAnotherSiteReachesNoSurfaceWithoutAnOrigin(t *testing.T) {
	h := newTestHub(t, nil)
	tried := 0
	for _, e := range endpointsOf(t, h) {
		at := map[string]string{"http_addr": h.url(), "pi_addr": "http://" + h.service.Addresses().Pi}[e.Listener]
		if at == "" { // gRPC, which a page cannot speak
			continue
		}
		methods := []string{e.Method}
		if e.Method == "*" {
			methods = []string{http.MethodGet, http.MethodPost}
		}
		for _, method := range methods {
			for _, site := range []string{"cross-site", "same-site"} {
				r, err := http.NewRequestWithContext(t.Context(), method, at+strings.ReplaceAll(strings.ReplaceAll(e.Path, "{id}", "none"), "*", "x"), nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Sec-Fetch-Site", site)
				resp, err := http.DefaultTransport.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if tried++; resp.StatusCode != http.StatusForbidden {
					t.Errorf("%s of %s %s: got %d, want %d", site, method, r.URL, resp.StatusCode, http.StatusForbidden)
				}
			}
		}
	}
	if tried < 60 {
		t.Errorf("got %d requests tried, want two for each endpoint", tried)
	}
}

// An agent asks the hub that is named for its gRPC address. It sends nothing to the usual port of
// this machine, where another program may listen.
func TestAnAgentSendsNothingToTheUsualPortOfThisMachine(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:50051")
	if err != nil {
		notRun(t, "the usual port is taken: "+err.Error())
	}
	defer l.Close()
	reached := make(chan struct{}, 1)
	go func() {
		if conn, err := l.Accept(); err == nil {
			conn.Close()
			reached <- struct{}{}
		}
	}()
	for name, overview := range map[string]string{"a hub without gRPC": `{"addresses":{"http":"127.0.0.1:8080"}}`, "an old hub": `{}`} {
		hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, overview) }))
		t.Setenv("DRAGOMAN_HUB", hub.URL)
		t.Setenv("DRAGOMAN_TOKEN", "secret")
		code, _, stderr := run(t, "agent", "--name", "shout", "--dialect", "coven", "--", "cat")
		hub.Close()
		if code == command.ExitDone || stderr == "" {
			t.Errorf("%s: got %d and %q, want an error", name, code, stderr)
		}
		select {
		case <-reached:
			t.Errorf("%s: got a connection at the usual port, want none", name)
		default:
		}
	}
}
