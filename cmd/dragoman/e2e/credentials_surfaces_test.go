package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

// credentialHub is a hub with TLS that takes every credential.
type credentialHub struct {
	*testHub
	roots *x509.CertPool
	asked atomic.Int64

	mu      sync.Mutex
	secrets map[string]bool // that were brought
}

func newCredentialHub(h *testHub) (*credentialHub, error) {
	text, err := os.ReadFile(h.config.TLS.Cert)
	if err != nil {
		return nil, err
	}
	c := &credentialHub{testHub: h, roots: x509.NewCertPool(), secrets: map[string]bool{}}
	c.roots.AppendCertsFromPEM(text)
	return c, nil
}

// at returns the address of the HTTP listener.
func (h *credentialHub) at() string { return "https://" + h.service.Addresses().HTTP }

// encryption sends the certificate whether the hub knows its authority or not.
func (h *credentialHub) encryption(b brought) *tls.Config {
	c := &tls.Config{RootCAs: h.roots, MinVersion: tls.VersionTLS13}
	if b.certificate != nil {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return b.certificate, nil }
	}
	return c
}

// question returns an instruction whose second word no other has.
func (h *credentialHub) question() string { return fmt.Sprintf("am I%d", h.asked.Add(1)) }

// surface is a place where clients come in, with its real client.
type surface struct {
	name string
	// carries are the ways in which the client can bring a credential.
	carries way
	// enter comes in and returns the name of the principal that the hub sees, before a comma. The
	// credential is of who.
	enter func(t *testing.T, h *credentialHub, bring func() brought, who string) (string, error)
	// says is what a refusal of a token says in other words; "" is the same.
	says string
	// waits is set where a refusal takes seconds, because the client tries again.
	waits bool
}

const (
	inAnyHeader    = inHeader | inSignature | inCertificate
	inAnyWebSocket = inAnyHeader | inSubprotocol
)

// surfaces are all of them.
func surfaces() []surface {
	const unknown = "the hub does not know the token, or it has expired"
	const mcp = "the token is unknown or has expired|the Authorization header is not understood|Invalid authentication token|the tokens .* differ"
	return []surface{
		{"Coven agent", inAnyHeader, covenAgentEnters, "", false},
		{"Coven client", inAnyHeader, covenClientEnters, "", false},
		{"Parallax agent, WebSocket", inAnyWebSocket, parallaxEnters, "", false},
		{"Parallax agent, gRPC gateway", inAnyHeader, gatewayEnters, "", false},
		{"pi-server, WebSocket", inAnyWebSocket | inBare, piEnters(func(h *credentialHub) string { return "https://" + h.service.Addresses().Pi + "/" }), "", false},
		{"pi-server beside others", inAnyWebSocket, piEnters(func(h *credentialHub) string { return h.at() + "/ws/pi" }), "", false},
		{"pi-server, Unix socket", inKernel, piUnixEnters, "", false},
		{"pi-server, `dragoman stdio`", inToken, piBridgeEnters, unknown, false},
		{"ACP, WebSocket", inAnyWebSocket, acpEnters, "", false},
		{"ACP, HTTP mailbox", inAnyHeader, acpPosterEnters, "", false},
		{"editor, WebSocket", inAnyWebSocket, editorEnters, "", false},
		{"editor, `dragoman editor`", inToken, editorBridgeEnters, unknown, true},
		{"MCP", inAnyHeader, mcpEnters, mcp, false},
		{"A2A", inAnyHeader, a2aEnters, "", false},
		{"native agent", inAnyWebSocket, nativeAgentEnters, "", false},
		{"native client", inAnyWebSocket, nativeClientEnters, "", false},
		{"REST", inAnyHeader, restEnters, "", false},
		{"`dragoman ask`", inToken | inCertificate, askEnters, unknown, false},
		{"`dragoman agent`", inToken | inCertificate, agentEnters, unknown, false},
	}
}

// refusedAt is the answer to a request that was refused.
type refusedAt struct {
	status       int
	authenticate string
	text         string
}

func (r *refusedAt) Error() string {
	return fmt.Sprintf("%d (%s): %s", r.status, r.authenticate, r.text)
}

// carrier adds credentials to requests, and keeps the first refusal.
type carrier struct {
	next  http.RoundTripper
	bring func() brought

	mu      sync.Mutex
	refused error
}

// RoundTrip implements http.RoundTripper.
func (c *carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	maps.Copy(r.Header, c.bring().header)
	resp, err := c.next.RoundTrip(r)
	var refused *refusedAt
	if err == nil && resp.StatusCode >= 400 {
		body, _ := io.ReadAll(resp.Body) // what is missing fails the comparison
		_ = resp.Body.Close()
		resp.Body = io.NopCloser(bytes.NewReader(body))
		refused = &refusedAt{resp.StatusCode, resp.Header.Get("WWW-Authenticate"), string(body)}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.refused != nil:
	case err != nil:
		c.refused = err
	case refused != nil:
		c.refused = refused
	}
	return resp, err
}

// first returns the first refusal.
func (c *carrier) first() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}

func (h *credentialHub) carrier(t *testing.T, bring func() brought) *carrier {
	next := &http.Transport{TLSClientConfig: h.encryption(bring())}
	t.Cleanup(next.CloseIdleConnections)
	return &carrier{next: next, bring: bring}
}

// ask lets a client of HTTP ask who is asking, and returns the answer.
func (h *credentialHub) ask(t *testing.T, bring func() brought, begin func(*httpClient, query) (*exchange, error)) (string, error) {
	c := h.carrier(t, bring)
	ctx, stop := context.WithCancel(t.Context())
	all := &httpClient{base: h.at(), http: &http.Client{Transport: c}, ctx: ctx, stop: stop}
	defer all.leave()
	x, err := begin(all, query{to: "who", content: h.question(), deadline: ample})
	if err = errors.Join(c.first(), err); err != nil {
		return "", err
	}
	got := x.wait(t)
	if err := c.first(); err != nil {
		return "", err
	}
	if got.Text == "" {
		return "", fmt.Errorf("%+v", got)
	}
	return strings.Trim(got.Text, `"`), nil
}

// webSocket opens one.
func (h *credentialHub) webSocket(t *testing.T, bring func() brought, url, id string) (link.Conn[[]byte, []byte], error) {
	c, b := h.carrier(t, bring), bring()
	conn, err := ws.Dial(t.Context(), url, ws.DialOptions{
		Header: http.Header{"X-Agent-Id": {id}}, Subprotocols: b.protocols, Client: &http.Client{Transport: c}, Limits: ws.Limits{ReadLimit: client.MaxNativeBytes},
	})
	if err != nil {
		return nil, errors.Join(c.first(), err)
	}
	t.Cleanup(func() { _ = conn.Close(link.Reason{Cause: link.Normal}) })
	return conn, nil
}

// call connects to the gRPC listener, and returns a context with the metadata of one call.
func (h *credentialHub) call(t *testing.T, bring func() brought) (context.Context, *grpc.ClientConn, error) {
	b := bring()
	cc, err := grpcserver.Dial(t.Context(), h.service.Addresses().GRPC, grpcserver.DialOptions{TLS: h.encryption(b)})
	if err != nil {
		return nil, nil, err
	}
	t.Cleanup(func() { _ = cc.Close() })
	header := metadata.MD{}
	for key, values := range b.header {
		header.Append(key, values...)
	}
	return metadata.NewOutgoingContext(t.Context(), header), cc, nil
}

// agent runs an agent with the id until the hub has accepted it, and returns its principal.
func (h *credentialHub) agent(t *testing.T, id string, work func(ctx context.Context, card core.Card, joined func()) error) (string, error) {
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	joined, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- work(ctx, core.Card{ID: core.AgentID(id), MaxConcurrent: 1}, sync.OnceFunc(func() { close(joined) }))
	}()
	select {
	case err := <-ended:
		return "", err
	case <-joined:
	}
	a, _ := h.service.Hub().Agent(core.Principal{Operator: true}, core.AgentID(id))
	leave()
	<-ended
	h.await(t, "left "+id)
	return fmt.Sprintf("%s, authenticated %v", a.Principal.ID, a.Principal.Authenticated), nil
}

func restEnters(t *testing.T, h *credentialHub, bring func() brought, _ string) (string, error) {
	return h.ask(t, bring, func(c *httpClient, q query) (*exchange, error) { return (&restClient{c}).begin(q), nil })
}

func a2aEnters(t *testing.T, h *credentialHub, bring func() brought, _ string) (string, error) {
	return h.ask(t, bring, func(c *httpClient, q query) (*exchange, error) { return (&a2aClient{c, true}).begin(q), nil })
}

func acpPosterEnters(t *testing.T, h *credentialHub, bring func() brought, who string) (string, error) {
	return h.ask(t, bring, func(c *httpClient, q query) (*exchange, error) { return (&acpPoster{c, who}).begin(q), nil })
}

func mcpEnters(t *testing.T, h *credentialHub, bring func() brought, _ string) (string, error) {
	return h.ask(t, bring, func(c *httpClient, q query) (*exchange, error) {
		m := &mcpClient{httpClient: c}
		if err := m.initialize(c.ctx); err != nil {
			return nil, err
		}
		return m.begin(q), nil
	})
}

func askEnters(t *testing.T, h *credentialHub, bring func() brought, _ string) (string, error) {
	code, out, stderr := run(t, append([]string{"ask", "who", h.question(), "--hub", h.at(), "--ca", h.config.TLS.Cert}, bring().flags(t)...)...)
	if code != command.ExitDone {
		return "", errors.New(stderr)
	}
	return out, nil
}

// flags returns the credential as flags of a command.
func (b brought) flags(t *testing.T) []string {
	t.Helper()
	all := []string{"--token", b.token}
	if b.certificate == nil {
		return all
	}
	cert, key := filepath.Join(t.TempDir(), "client.crt"), filepath.Join(t.TempDir(), "client.key")
	private, err := x509.MarshalPKCS8PrivateKey(b.certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: b.certificate.Certificate[0]}, key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return append(all, "--cert", cert, "--key", key)
}

func agentEnters(t *testing.T, h *credentialHub, bring func() brought, who string) (string, error) {
	return h.agent(t, who, func(ctx context.Context, card core.Card, joined func()) error {
		ended := make(chan struct{})
		go func() {
			select {
			case <-ended:
			default:
				if _, err := h.wait(ctx, "joined "+string(card.ID)); err == nil {
					joined()
				}
			}
		}()
		defer close(ended)
		code, _, stderr := runWith(ctx, "", slices.Concat([]string{"agent", "--name", string(card.ID), "--hub", h.at(), "--ca", h.config.TLS.Cert}, bring().flags(t), []string{"--", "cat"})...)
		if code != command.ExitDone {
			return errors.New(stderr)
		}
		return nil
	})
}

// isRefusal reports whether an error is how the surface refuses somebody, and says what it should.
func (s surface) isRefusal(err error, says string) bool {
	var answer *refusedAt
	var fault *core.Fault
	switch {
	case err == nil || !regexp.MustCompile(says).MatchString(err.Error()):
		return false
	case errors.As(err, &answer):
		return answer.status == http.StatusUnauthorized && strings.HasPrefix(answer.authenticate, "Bearer")
	case errors.As(err, &fault):
		return fault.Code == core.CodeUnauthenticated
	case status.Code(err) != codes.Unknown:
		return status.Code(err) == codes.Unauthenticated
	}
	return true
}

// isBroken reports whether an error is that of a connection which ended in the handshake.
func isBroken(err error) bool {
	var answer *refusedAt
	return err != nil && !errors.As(err, &answer) && core.AsFault(err).Code != core.CodeUnauthenticated && status.Code(err) != codes.Unauthenticated
}
