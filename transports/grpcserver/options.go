package grpcserver

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

// DefaultMaxMessageBytes is the default size limit of a message: that of gRPC clients in
// other languages.
const DefaultMaxMessageBytes = 4 << 20

const (
	// maxHeaderBytes is the maximum size of the metadata of a call, uncompressed.
	maxHeaderBytes = 64 << 10
	// maxStreams is the maximum number of open calls of a connection.
	maxStreams = 128
	// idleTime is how long a connection without calls is kept.
	idleTime = 15 * time.Minute
	// window is the flow control window of each stream and connection.
	window = 256 << 10
	// bufferBytes is the size of the buffers that come from a pool while a connection reads or writes. With TLS, and
	// outside Linux, the one to read is kept all the time.
	bufferBytes = 8 << 10
)

// Options are the settings of a Server. A zero field means its default.
type Options struct {
	// MaxMessageBytes is the largest message in either direction; default 4 MiB.
	MaxMessageBytes int
	// Larger has higher limits for requests, by the full name of a method: for services
	// with a better error message for a large request.
	Larger map[string]int
	// MaxConnections is the maximum number of open connections; default 4096. Others are
	// closed as soon as they are accepted.
	MaxConnections int
	// AdmitConn, if set, reports whether there is room for a connection. It may be called
	// concurrently.
	AdmitConn func(net.Conn) bool
	// MaxUnauthenticated is how many of them may be without a call that Admit has admitted;
	// default a sixteenth of MaxConnections, at least 16. Beyond it the oldest is closed.
	MaxUnauthenticated int
	// AuthTimeout is how long a connection may be without such a call; default 10 s.
	AuthTimeout time.Duration

	// ConnectTimeout is how long the handshake of a connection may take; default 10 s.
	ConnectTimeout time.Duration
	// BodyTimeout is how long the request of a call may take that has only one; default 30 s.
	BodyTimeout time.Duration
	// PingEvery is how long a connection may be silent before it is pinged; default 15 s.
	PingEvery time.Duration
	// PingTimeout is how long the answer may take before the connection is closed; default
	// 5 s.
	PingTimeout time.Duration
	// MinClientPing is the shortest interval at which a client may ping, with or without an
	// open call; default 5 s. A client that pings faster is disconnected.
	MinClientPing time.Duration

	// TLS, if set, is required of every client.
	TLS *tls.Config

	// Admit, if set, authenticates every call but Check of the health service. It is called
	// when the metadata has arrived, before a body is read, with ctx of the call; of a method
	// that is not registered it gets "(unknown)". The handler gets the context that it returns;
	// the client gets its error, a status. It may be called concurrently, and while it waits
	// the connection is not read.
	Admit func(ctx context.Context, method string) (context.Context, error)

	// Unavailable, if set, returns why the server answers no call at all, also not Check of the health
	// service: every client gets UNAVAILABLE with it. It may be called concurrently.
	Unavailable func() string

	// OnPanic is called when a handler panics; its client gets INTERNAL. It may be called
	// concurrently.
	OnPanic func(method string, value any, stack []byte)
	// OnRefused is called for each connection that MaxConnections closes.
	OnRefused func(remote net.Addr)
	// OnUnauthenticated is called for each connection that is closed because Admit has
	// admitted no call of it. It must not wait.
	OnUnauthenticated func(remote net.Addr)
}

// or returns v, or d if v is zero.
func or[T comparable](v, d T) T {
	var zero T
	if v == zero {
		return d
	}
	return v
}

// withDefaults returns o with defaults in place of zeros.
func (o Options) withDefaults() Options {
	o.MaxMessageBytes = or(o.MaxMessageBytes, DefaultMaxMessageBytes)
	o.MaxConnections = or(o.MaxConnections, 4096)
	o.MaxUnauthenticated = or(o.MaxUnauthenticated, max(o.MaxConnections/16, 16))
	o.AuthTimeout = or(o.AuthTimeout, 10*time.Second)
	o.BodyTimeout = or(o.BodyTimeout, 30*time.Second)
	o.ConnectTimeout = or(o.ConnectTimeout, 10*time.Second)
	o.PingEvery = or(o.PingEvery, 15*time.Second)
	o.PingTimeout = or(o.PingTimeout, 5*time.Second)
	o.MinClientPing = or(o.MinClientPing, 5*time.Second)
	if o.OnPanic == nil {
		o.OnPanic = func(string, any, []byte) {}
	}
	if o.AdmitConn == nil {
		o.AdmitConn = func(net.Conn) bool { return true }
	}
	if o.OnRefused == nil {
		o.OnRefused = func(net.Addr) {}
	}
	if o.OnUnauthenticated == nil {
		o.OnUnauthenticated = func(net.Addr) {}
	}
	return o
}

// limitOf returns the limit for messages that a method receives.
func (o *Options) limitOf(method string) int { return max(o.MaxMessageBytes, o.Larger[method]) }

// server returns the options for grpc-go.
func (o Options) server() []grpc.ServerOption {
	largest := o.MaxMessageBytes
	for method := range o.Larger {
		largest = max(largest, o.limitOf(method))
	}
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(largest),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.ConnectionTimeout(o.ConnectTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: idleTime,
			Time:              o.PingEvery,
			Timeout:           o.PingTimeout,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime:             o.MinClientPing,
			PermitWithoutStream: true,
		}),
		grpc.StaticStreamWindowSize(window),
		grpc.StaticConnWindowSize(window),
		grpc.ReadBufferSize(bufferBytes),
		grpc.WriteBufferSize(bufferBytes),
	}
}

// credentials returns the handshake of connections.
func (o Options) credentials() credentials.TransportCredentials {
	if o.TLS != nil {
		return credentials.NewTLS(o.TLS)
	}
	return insecure.NewCredentials()
}
