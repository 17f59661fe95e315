package grpcserver

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
)

// DefaultMaxMessageBytes is the largest message that is read or written unless
// an option says otherwise: the limit that gRPC clients of other languages have.
const DefaultMaxMessageBytes = 4 << 20

// Options are the settings of a Server. The zero value of each field stands for
// the default named beside it.
type Options struct {
	// MaxMessageBytes bounds a message in either direction: 4 MiB.
	MaxMessageBytes int
	// Larger are the calls, by their full names, whose requests may be larger than
	// that, and how large: for services that can say better what is wrong with one.
	Larger map[string]int
	// MaxHeaderBytes bounds the metadata of a call, uncompressed: 64 KiB.
	MaxHeaderBytes int
	// MaxConnections is how many connections may be open at a time: 4096. One
	// more is closed as soon as it is accepted.
	MaxConnections int
	// AdmitConn, if set, is asked whether there is room for a connection. It may be called
	// from several goroutines.
	AdmitConn func(net.Conn) bool
	// MaxStreams is how many calls one connection may have under way: 128.
	MaxStreams int

	// ConnectTimeout is how long a new connection has to finish its handshake: 10 s.
	ConnectTimeout time.Duration
	// IdleTimeout is how long a connection without a call is kept: 15 min.
	IdleTimeout time.Duration
	// PingEvery is how long a connection may be silent before it is pinged: 15 s.
	PingEvery time.Duration
	// PingTimeout is how long the answer may take before the connection is
	// closed: 5 s.
	PingTimeout time.Duration
	// MinClientPing is the shortest interval at which a client may ping, with or
	// without a call under way: 5 s. One that pings faster is sent away.
	MinClientPing time.Duration

	// Window is how many bytes one stream, and one connection, may have sent
	// ahead of what was read: 256 KiB. 64 KiB is the least.
	Window int
	// ReadBuffer and WriteBuffer are taken from a pool while a connection has
	// something to read or write: 8 KiB each. Over TLS, and outside Linux, the
	// read buffer is held all the time.
	ReadBuffer, WriteBuffer int

	// TLS, if set, is required of every client.
	TLS *tls.Config

	// Admit, if set, is asked of every call, health and reflection included, before
	// its handler runs. The context that it returns is the call's; its error, a status,
	// is all that the client is told. It may be called from several goroutines.
	Admit func(ctx context.Context, method string) (context.Context, error)

	// OnPanic is told of a handler that panicked; its client is told INTERNAL.
	// It may be called from several goroutines.
	OnPanic func(method string, value any, stack []byte)
	// OnRefused is told of a connection closed for MaxConnections.
	OnRefused func(remote net.Addr)
}

// or returns v, or d where v is the zero value.
func or[T comparable](v, d T) T {
	var zero T
	if v == zero {
		return d
	}
	return v
}

// withDefaults returns o with every unset limit filled in.
func (o Options) withDefaults() Options {
	o.MaxMessageBytes = or(o.MaxMessageBytes, DefaultMaxMessageBytes)
	o.MaxHeaderBytes = or(o.MaxHeaderBytes, 64<<10)
	o.MaxConnections = or(o.MaxConnections, 4096)
	o.MaxStreams = or(o.MaxStreams, 128)
	o.ConnectTimeout = or(o.ConnectTimeout, 10*time.Second)
	o.IdleTimeout = or(o.IdleTimeout, 15*time.Minute)
	o.PingEvery = or(o.PingEvery, 15*time.Second)
	o.PingTimeout = or(o.PingTimeout, 5*time.Second)
	o.MinClientPing = or(o.MinClientPing, 5*time.Second)
	o.Window = or(o.Window, 256<<10)
	o.ReadBuffer = or(o.ReadBuffer, 8<<10)
	o.WriteBuffer = or(o.WriteBuffer, 8<<10)
	if o.OnPanic == nil {
		o.OnPanic = func(string, any, []byte) {}
	}
	if o.AdmitConn == nil {
		o.AdmitConn = func(net.Conn) bool { return true }
	}
	if o.OnRefused == nil {
		o.OnRefused = func(net.Addr) {}
	}
	return o
}

// server returns what grpc-go makes of o.
func (o Options) server() []grpc.ServerOption {
	opts := []grpc.ServerOption{
		grpc.MaxHeaderListSize(uint32(o.MaxHeaderBytes)),
		grpc.MaxConcurrentStreams(uint32(o.MaxStreams)),
		grpc.ConnectionTimeout(o.ConnectTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: o.IdleTimeout,
			Time:              o.PingEvery,
			Timeout:           o.PingTimeout,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime:             o.MinClientPing,
			PermitWithoutStream: true,
		}),
		grpc.StaticStreamWindowSize(int32(o.Window)),
		grpc.StaticConnWindowSize(int32(o.Window)),
		grpc.ReadBufferSize(o.ReadBuffer),
		grpc.WriteBufferSize(o.WriteBuffer),
	}
	if o.TLS != nil {
		opts = append(opts, grpc.Creds(credentials.NewTLS(o.TLS)))
	}
	return opts
}
