package grpcserver

import (
	"context"
	"crypto/x509"
	"net"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/dragoman-hub/dragoman/transports/connlimit"
)

// maxRefusals is how many calls of a connection may be refused before one is admitted. Then it
// is closed: each refusal costs memory until the deadline that the client chose.
const maxRefusals = 32

// PeerCertificates returns the verified chain of the client certificate of a call, leaf first;
// nil without one. ctx is that of the call, in Options.Admit too.
func PeerCertificates(ctx context.Context) []*x509.Certificate {
	at, _ := peerOf(ctx)
	if info, ok := at.AuthInfo.(credentials.TLSInfo); ok && len(info.State.VerifiedChains) > 0 {
		return info.State.VerifiedChains[0]
	}
	return nil
}

// Proven reports whether Options.Admit has admitted an earlier call of the connection. ctx is
// that of a call.
func Proven(ctx context.Context) bool {
	at, ok := peerOf(ctx)
	return ok && at.IsProven()
}

// peerInfo is what a call knows of its connection.
type peerInfo struct {
	credentials.AuthInfo
	*connection
}

// connection is a connection at the server's end.
type connection struct {
	*connlimit.Conn
	refused atomic.Int32 // calls
	watches atomic.Int32 // of its health
}

// refuse counts a call that was refused.
func (c *connection) refuse() {
	if c.refused.Add(1) >= maxRefusals {
		c.Expire()
	}
}

// peerOf returns the connection of a call, as ServerHandshake has made it known; false if ctx is not that of a call.
func peerOf(ctx context.Context) (info peerInfo, ok bool) {
	if from, is := peer.FromContext(ctx); is {
		info, ok = from.AuthInfo.(peerInfo)
	}
	return info, ok
}

// limited is a listener within the limits of a server.
type limited struct {
	net.Listener
	connlimit.Limiter
	opts *Options
}

func newLimited(l net.Listener, o *Options) *limited {
	c := &limited{Listener: l, opts: o, Limiter: connlimit.Limiter{Max: o.MaxConnections, ProveTime: o.AuthTimeout, OnUnproven: o.OnUnauthenticated}}
	if o.Admit != nil {
		c.MaxUnproven = min(o.MaxUnauthenticated, o.MaxConnections)
	}
	return c
}

// Accept returns the next connection for which there is room.
func (l *limited) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if room := l.opts.AdmitConn(accepted); room {
			if c := l.Enter(accepted); c != nil {
				return c, nil
			}
			l.opts.OnRefused(accepted.RemoteAddr())
		}
		accepted.Close()
	}
}

// handshake makes each connection known to its calls.
type handshake struct {
	credentials.TransportCredentials
}

// ServerHandshake implements [credentials.TransportCredentials]. Without TLS it returns what was accepted: grpc-go reads a
// bare TCP connection without keeping a buffer for it, but not one in a wrapper.
func (h handshake) ServerHandshake(accepted net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := h.TransportCredentials.ServerHandshake(accepted)
	if err != nil {
		return nil, nil, err
	}
	c := accepted.(*connlimit.Conn)
	if conn == accepted {
		conn = c.Conn
	}
	return conn, peerInfo{info, &connection{Conn: c}}, nil
}

// Clone implements [credentials.TransportCredentials].
func (h handshake) Clone() credentials.TransportCredentials {
	return handshake{h.TransportCredentials.Clone()}
}
