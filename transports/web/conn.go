package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/transports/connlimit"
)

const (
	// maxRefusals is how many connections for which there is no room are open at a time; beyond it the oldest is
	// closed without an answer.
	maxRefusals = 64
	// refusalTime is how long such a connection may take to send a request.
	refusalTime = 500 * time.Millisecond
)

// listener accepts connections within the limits of a server.
type listener struct {
	net.Listener
	opts    *Options
	allowed connlimit.Limiter
	refused connlimit.Limiter // the connections for which there is no room
}

func newListener(l net.Listener, o *Options) *listener {
	return &listener{
		Listener: l, opts: o,
		allowed: connlimit.Limiter{Max: o.MaxConnections, MaxUnproven: o.MaxUnauthenticated, ProveTime: o.AuthTimeout, OnUnproven: o.OnUnauthenticated},
		refused: connlimit.Limiter{Max: maxRefusals, MaxUnproven: maxRefusals, ProveTime: refusalTime},
	}
}

// Accept returns the next connection that is answered.
func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.admit(accepted); c != nil {
			return c, nil
		}
		accepted.Close()
	}
}

// admit returns a connection to serve, which may be to be refused; nil if it is to be closed without an answer.
func (l *listener) admit(accepted net.Conn) *conn {
	accept, answer := l.opts.Admit(accepted)
	if accept {
		if c := l.allowed.Enter(accepted); c != nil {
			return &conn{Conn: c}
		}
		l.opts.OnRefused(accepted.RemoteAddr())
	}
	if !accept && !answer || l.opts.TLS != nil { // a handshake costs more than an answer is worth
		return nil
	}
	if c := l.refused.Enter(accepted); c != nil {
		return &conn{Conn: c, refused: true}
	}
	return nil
}

// conn is a connection of the server, and the context value of its requests.
type conn struct {
	*connlimit.Conn
	refused bool // there is no room for it: its first request is the last
}

type connKey struct{}

// withConn is the ConnContext of the server.
func withConn(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	return context.WithValue(ctx, connKey{}, c)
}

// admits reports whether there is room for a request, and answers if there is not.
func (c *conn) admits(a *answer, r *http.Request, always []string) bool {
	if !c.refused {
		return true
	}
	a.Header().Set("Connection", "close")
	if (r.Method == http.MethodGet || r.Method == http.MethodHead) && slices.Contains(always, r.URL.Path) {
		return true
	}
	a.Header().Set("Retry-After", "1")
	a.refuse(http.StatusServiceUnavailable, "overloaded", "there is no room for another connection; try again later")
	return false
}

// Authenticated records that a request has authenticated. Its connection leaves the share of
// those that have not.
func Authenticated(r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(*conn); ok && !c.refused {
		c.Prove()
	}
}

// PeerCertificates returns the verified chain of the client certificate of a request, leaf
// first; nil without one.
func PeerCertificates(r *http.Request) []*x509.Certificate {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return nil
	}
	return r.TLS.VerifiedChains[0]
}
