package ws

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"path"
	"strings"

	"github.com/coder/websocket"
)

// AcceptOptions are the settings of Accept. The zero value admits programs, and pages of the
// same host.
type AcceptOptions struct {
	Limits

	// Origins are other origins whose pages may connect: host or scheme://host patterns of
	// path.Match, case-insensitive.
	Origins []string
	// Hosts are patterns of the hosts that requests may ask for, without port. If there are
	// none, requests over loopback may ask for loopback names only, others for any.
	Hosts []string
	// Header is added to the response.
	Header http.Header
	// Subprotocol is the one to accept, if the client offers it. EchoSubprotocol accepts the
	// first one that it offers if Subprotocol is "".
	Subprotocol     string
	EchoSubprotocol bool
}

// Accept upgrades the request r to a WebSocket. If it returns an error, it has answered the
// request: 426 without an upgrade header, 403 if Origin or Host is not allowed, else as
// in RFC 6455.
func Accept(w http.ResponseWriter, r *http.Request, opts AcceptOptions) (*Conn, error) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "websocket")
		refuse(w, http.StatusUpgradeRequired, "Upgrade Required")
		return nil, fmt.Errorf("accept websocket: not an upgrade request")
	}
	if err := checkHost(r, opts.Hosts); err != nil {
		refuse(w, http.StatusForbidden, err.Error())
		return nil, fmt.Errorf("accept websocket: %w", err)
	}
	if from := r.Header.Get("Sec-Fetch-Site"); r.Header.Get("Origin") == "" && (strings.EqualFold(from, "cross-site") || strings.EqualFold(from, "same-site")) {
		refuse(w, http.StatusForbidden, "a page of another site caused this request (Sec-Fetch-Site)")
		return nil, fmt.Errorf("accept websocket: Sec-Fetch-Site %s without Origin", from)
	}
	maps.Copy(w.Header(), opts.Header)

	h := &hijack{ResponseWriter: w}
	c, err := websocket.Accept(h, r, &websocket.AcceptOptions{
		OriginPatterns: opts.Origins,
		Subprotocols:   accepted(r, opts),
	})
	if err != nil {
		return nil, fmt.Errorf("accept websocket: %w", err)
	}
	return newConn(c, h.wire, opts.Limits), nil
}

func refuse(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text))
}

// accepted returns the subprotocol to accept; the library looks whether it is offered.
func accepted(r *http.Request, opts AcceptOptions) []string {
	if opts.Subprotocol != "" {
		return []string{opts.Subprotocol}
	}
	first, _, _ := strings.Cut(r.Header.Get("Sec-WebSocket-Protocol"), ",")
	if first = strings.TrimSpace(first); !opts.EchoSubprotocol || first == "" {
		return nil
	}
	return []string{first}
}

// checkHost refuses requests whose Host is not a name of this listener, which prevents DNS
// rebinding.
func checkHost(r *http.Request, allowed []string) error {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if len(allowed) == 0 {
		if isLoopback(host) || !onLoopback(r) {
			return nil
		}
		return fmt.Errorf("host %q is not a loopback name", host)
	}
	for _, pattern := range allowed {
		if ok, err := path.Match(strings.ToLower(pattern), host); ok && err == nil {
			return nil
		}
	}
	return fmt.Errorf("host %q is not allowed", host)
}

// isLoopback reports whether host always means this machine.
func isLoopback(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// onLoopback reports whether the request was received on a loopback address.
func onLoopback(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// hijack makes the library use a wire instead of the socket.
type hijack struct {
	http.ResponseWriter
	wire *wire
}

// Hijack implements [http.Hijacker].
func (h *hijack) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.wire = newWire(c, false)
	if n := rw.Reader.Buffered(); n > 0 { // net/http has read the beginning of the stream
		early, _ := rw.Reader.Peek(n)
		h.wire.in = io.MultiReader(bytes.NewReader(bytes.Clone(early)), c)
	}
	return wireConn{Conn: c, wire: h.wire}, bufio.NewReadWriter(
		bufio.NewReaderSize(h.wire, readerBytes),
		bufio.NewWriterSize(h.wire, controlBytes),
	), nil
}

// wireConn is the socket of net/http, read and written through the wire.
type wireConn struct {
	net.Conn
	wire *wire
}

func (c wireConn) Read(p []byte) (int, error)  { return c.wire.Read(p) }
func (c wireConn) Write(p []byte) (int, error) { return c.wire.Write(p) }
func (c wireConn) Close() error                { return c.wire.Close() }
