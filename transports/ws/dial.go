package ws

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/coder/websocket"
)

// DialOptions are the settings of Dial.
type DialOptions struct {
	Limits

	// Header is added to the request.
	Header http.Header
	// Subprotocols are offered in this order.
	Subprotocols []string
	// Client sends the request. nil means [http.DefaultClient].
	Client *http.Client
}

// HandshakeError is the response of a server that did not upgrade the request.
type HandshakeError struct {
	// Status is the HTTP status.
	Status int
	// Text is the beginning of the body.
	Text string
}

// Error implements error.
func (e *HandshakeError) Error() string {
	s := fmt.Sprintf("the server answered %d %s", e.Status, http.StatusText(e.Status))
	if e.Text != "" {
		s += ": " + e.Text
	}
	return s
}

// Dial connects to url, with the scheme ws, wss, http or https. ctx bounds only the
// handshake. If the server does not upgrade, the error is a *[HandshakeError].
func Dial(ctx context.Context, url string, opts DialOptions) (*Conn, error) {
	client := http.DefaultClient
	if opts.Client != nil {
		client = opts.Client
	}
	tapped := *client
	t := &tap{next: client.Transport}
	tapped.Transport = t

	//nolint:bodyclose // the library has closed it, or uses it for the connection
	c, resp, err := websocket.Dial(ctx, url, &websocket.DialOptions{
		HTTPClient:   &tapped,
		HTTPHeader:   opts.Header,
		Subprotocols: opts.Subprotocols,
	})
	if err != nil {
		if resp != nil && resp.StatusCode != http.StatusSwitchingProtocols {
			text, _ := io.ReadAll(resp.Body) // at most 1024 bytes, already in memory
			err = &HandshakeError{Status: resp.StatusCode, Text: strings.TrimSpace(string(text))}
		}
		return nil, fmt.Errorf("dial websocket %s: %w", url, err)
	}
	return newConn(c, t.wire, opts.Limits), nil
}

// tap makes the library use a wire instead of the socket.
type tap struct {
	next http.RoundTripper
	wire *wire
}

// RoundTrip implements [http.RoundTripper].
func (t *tap) RoundTrip(r *http.Request) (*http.Response, error) {
	next := t.next
	if next == nil {
		next = http.DefaultTransport
	}
	resp, err := next.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		return resp, err
	}
	if rwc, ok := resp.Body.(io.ReadWriteCloser); ok {
		t.wire = newWire(rwc, true)
		resp.Body = t.wire
	}
	return resp, nil
}
