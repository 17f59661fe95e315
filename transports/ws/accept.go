package ws

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"path"
	"strings"

	"github.com/coder/websocket"
)

// AcceptOptions say who is let in and what may come in. The zero options let in
// programs and the pages of the same host.
type AcceptOptions struct {
	Limits

	// Origins are further origins whose pages may connect: host patterns as of
	// path.Match, matched without regard to case, or scheme://host patterns.
	Origins []string
	// Hosts are the host patterns by which this listener may be addressed, without
	// a port. None means: on a loopback address only loopback names, elsewhere any.
	Hosts []string
	// Header is added to the answer.
	Header http.Header
	// EchoSubprotocol agrees to the first subprotocol that the client offers.
	EchoSubprotocol bool
}

// Accept makes a WebSocket of the request r. When it returns an error it has
// answered the request: 426 if it asks for no upgrade, 403 if its Origin or Host
// is not allowed, or as RFC 6455 says.
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
	maps.Copy(w.Header(), opts.Header)

	// Beyond this function only the wire is kept: not the request, nor what
	// net/http keeps with it.
	var tapped *wire
	h := &hijack{ResponseWriter: w, tapped: &tapped}
	c, err := websocket.Accept(h, r, &websocket.AcceptOptions{
		OriginPatterns: opts.Origins,
		Subprotocols:   offered(r, opts.EchoSubprotocol),
		OnPingReceived: func(ctx context.Context, p []byte) bool { return tapped.pinged(ctx, p) },
	})
	if err != nil {
		return nil, fmt.Errorf("accept websocket: %w", err)
	}
	return newConn(c, tapped, opts.Limits), nil
}

func refuse(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text))
}

// offered returns the first subprotocol of the request, if it is to be echoed.
func offered(r *http.Request, echo bool) []string {
	first, _, _ := strings.Cut(r.Header.Get("Sec-WebSocket-Protocol"), ",")
	if first = strings.TrimSpace(first); !echo || first == "" {
		return nil
	}
	return []string{first}
}

// checkHost refuses requests for a host that this listener does not go by, as a
// page does whose name was rebound to our address.
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

// isLoopback reports whether host can mean nothing but this machine.
func isLoopback(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// onLoopback reports whether the request came in on a loopback address.
func onLoopback(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// hijack puts a wire between the library and the socket.
type hijack struct {
	http.ResponseWriter
	tapped **wire
}

// Hijack implements [http.Hijacker].
func (h *hijack) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	w := newWire(c, false)
	*h.tapped = w
	// What net/http has read too much is the beginning of the stream.
	early, _ := rw.Reader.Peek(rw.Reader.Buffered())
	w.in.early(early)
	return wireConn{Conn: c, wire: w}, bufio.NewReadWriter(
		bufio.NewReaderSize(w, readerBytes),
		bufio.NewWriterSize(w, writerBytes),
	), nil
}

// wireConn is the socket as net/http names it, read and written through the wire.
type wireConn struct {
	net.Conn
	wire *wire
}

func (c wireConn) Read(p []byte) (int, error)  { return c.wire.Read(p) }
func (c wireConn) Write(p []byte) (int, error) { return c.wire.Write(p) }
func (c wireConn) Close() error                { return c.wire.Close() }
