package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"slices"
	"time"
)

// Authenticated records that a request has authenticated. Its connection leaves the share of
// those that have not.
func Authenticated(r *http.Request) {
	if v, ok := r.Context().Value(visitKey{}).(*visit); ok {
		v.conn.prove()
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

// visit is the context value of a connection that has not authenticated at first. It belongs to
// the goroutine of the connection. A nil visit does nothing.
type visit struct{ conn *limitedConn }

type visitKey struct{}

// answerTime is how long a connection that is overdue may take to read its last answer.
const answerTime = time.Second

// withVisit is the ConnContext of the server.
func withVisit(ctx context.Context, conn net.Conn) context.Context {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	if one, ok := conn.(*limitedConn); ok && one.expire != nil {
		return context.WithValue(ctx, visitKey{}, &visit{conn: one})
	}
	return ctx
}

// begin notes that a request runs, during which the connection is not closed for its age.
func (v *visit) begin() {
	if v != nil {
		v.conn.serve(true)
	}
}

// end notes that the request has ended.
func (v *visit) end() {
	if v != nil {
		v.conn.serve(false)
	}
}

// limitedConn is a connection that counts as open until it is closed.
type limitedConn struct {
	net.Conn
	limiter *connLimiter
	expire  *time.Timer // nil if nobody has to authenticate

	gathered gathered

	// Guarded by limiter.mu.
	left    bool
	proven  bool
	serving bool // a request runs
	overdue bool // it had its time to authenticate
}

// enter counts conn if there is room for it; otherwise it returns nil.
func (d *connLimiter) enter(conn net.Conn) *limitedConn {
	o := d.server.opts
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.unproven) > 0 && (d.open >= o.MaxConnections || len(d.unproven) >= o.MaxUnauthenticated) {
		d.dropLocked(d.unproven[max(0, slices.IndexFunc(d.unproven, func(c *limitedConn) bool { return !c.serving }))])
	}
	if d.open >= o.MaxConnections {
		return nil
	}
	d.open++
	one := &limitedConn{Conn: conn, limiter: d}
	if o.MaxUnauthenticated > 0 {
		d.unproven = append(d.unproven, one)
		one.expire = time.AfterFunc(o.AuthTimeout, one.expired)
	}
	return one
}

// dropLocked closes an unproven connection.
func (d *connLimiter) dropLocked(one *limitedConn) {
	d.leaveLocked(one)
	one.Conn.Close()
	d.server.opts.OnUnauthenticated(one.RemoteAddr())
}

// leaveLocked forgets a connection.
func (d *connLimiter) leaveLocked(one *limitedConn) {
	if one.left {
		return
	}
	one.left = true
	d.open--
	d.forgetLocked(one)
}

// forgetLocked takes a connection out of the share of those that have not authenticated.
func (d *connLimiter) forgetLocked(one *limitedConn) {
	if one.expire == nil || one.proven {
		return
	}
	one.expire.Stop()
	d.unproven = slices.DeleteFunc(d.unproven, func(other *limitedConn) bool { return other == one })
}

// prove notes that a request of the connection has authenticated.
func (g *limitedConn) prove() {
	g.limiter.mu.Lock()
	defer g.limiter.mu.Unlock()
	if !g.left && !g.proven {
		g.limiter.forgetLocked(g)
		g.proven = true
	}
}

// serve notes that a request of the connection begins or ends.
func (g *limitedConn) serve(now bool) {
	g.limiter.mu.Lock()
	defer g.limiter.mu.Unlock()
	if g.serving = now; !now && g.overdue && !g.proven && !g.left {
		g.overdue = false
		g.expire.Reset(answerTime)
	}
}

// expired closes the connection unless it has authenticated; if a request runs, after it.
func (g *limitedConn) expired() {
	g.limiter.mu.Lock()
	defer g.limiter.mu.Unlock()
	switch {
	case g.proven || g.left:
	case g.serving:
		g.overdue = true
	default:
		g.limiter.dropLocked(g)
	}
}

// Close closes the connection, so that another may be accepted.
func (g *limitedConn) Close() error {
	err := g.Conn.Close()
	g.limiter.mu.Lock()
	defer g.limiter.mu.Unlock()
	g.limiter.leaveLocked(g)
	return err
}

// CloseWrite half-closes the connection. net/http calls it before it closes a connection
// whose client is still sending, so that the answer arrives.
func (g *limitedConn) CloseWrite() error {
	if half, ok := g.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
