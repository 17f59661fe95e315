package grpcserver

import (
	"context"
	"crypto/tls"
	"fmt"
	"math"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

// DialOptions are the settings of a client's connection. The zero value of each
// field stands for the default named beside it.
type DialOptions struct {
	// MaxMessageBytes bounds a message that is read: 4 MiB.
	MaxMessageBytes int
	// PingEvery is how long a connection with a call under way may be silent
	// before it is pinged: 20 s. Less than ten is raised to ten by gRPC.
	PingEvery time.Duration
	// PingTimeout is how long the answer may take: 10 s.
	PingTimeout time.Duration
	// TLS, if set, is used; otherwise the connection is in plain text.
	TLS *tls.Config
	// Credentials, if set, add metadata to every call, such as a token.
	Credentials credentials.PerRPCCredentials
	// Window, ReadBuffer and WriteBuffer are those of Options.
	Window, ReadBuffer, WriteBuffer int
}

// Dial connects to a server and returns once it has answered, or with the reason
// why it did not: a gRPC status with code UNAVAILABLE when nobody listens, or ctx's
// error. It asks for the server's health, but any answer will do. The caller closes
// what it returns; gRPC reconnects by itself until then.
func Dial(ctx context.Context, target string, o DialOptions) (*grpc.ClientConn, error) {
	window := int32(or(o.Window, 256<<10))
	creds := insecure.NewCredentials()
	if o.TLS != nil {
		creds = credentials.NewTLS(o.TLS)
	}
	opts := []grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(or(o.MaxMessageBytes, DefaultMaxMessageBytes)),
			grpc.MaxCallSendMsgSize(math.MaxInt32), // Send looks before it writes
		),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time:    or(o.PingEvery, 20*time.Second),
			Timeout: or(o.PingTimeout, 10*time.Second),
		}),
		grpc.WithStaticStreamWindowSize(window),
		grpc.WithStaticConnWindowSize(window),
		grpc.WithReadBufferSize(or(o.ReadBuffer, 8<<10)),
		grpc.WithWriteBufferSize(or(o.WriteBuffer, 8<<10)),
		grpc.WithDisableServiceConfig(), // no look-up of settings in the DNS
	}
	if o.Credentials != nil {
		opts = append(opts, grpc.WithPerRPCCredentials(o.Credentials))
	}
	cc, err := grpc.NewClient(target, opts...)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", target, err)
	}
	_, err = healthpb.NewHealthClient(cc).Check(ctx, &healthpb.HealthCheckRequest{})
	switch status.Code(err) {
	case codes.Unavailable, codes.Canceled, codes.DeadlineExceeded:
		cc.Close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, fmt.Errorf("dial %s: %w", target, err)
	}
	return cc, nil
}
