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

// DialOptions are the settings of a client's connection. A zero field means its default.
type DialOptions struct {
	// MaxMessageBytes is the largest message that is read; default 4 MiB.
	MaxMessageBytes int
	// PingEvery is how long a connection with an open call may be silent before it is
	// pinged; default 20 s. gRPC raises values below 10 s to 10 s.
	PingEvery time.Duration
	// PingTimeout is how long the answer may take; default 10 s.
	PingTimeout time.Duration
	// TLS, if set, encrypts the connection; otherwise it is plain text.
	TLS *tls.Config
	// Credentials, if set, add metadata to every call, such as a token.
	Credentials credentials.PerRPCCredentials
	// Window, ReadBuffer and WriteBuffer are those of Options.
	Window, ReadBuffer, WriteBuffer int
}

// Dial connects to a server and waits for an answer. It asks for the server's health, but
// accepts any answer. The error is a gRPC status, UNAVAILABLE if there is no server, or the
// error of ctx. The caller closes the connection; until then gRPC reconnects by itself.
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
			grpc.MaxCallSendMsgSize(math.MaxInt32), // Send checks the size before it writes
		),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time:    or(o.PingEvery, 20*time.Second),
			Timeout: or(o.PingTimeout, 10*time.Second),
		}),
		grpc.WithStaticStreamWindowSize(window),
		grpc.WithStaticConnWindowSize(window),
		grpc.WithReadBufferSize(or(o.ReadBuffer, 8<<10)),
		grpc.WithWriteBufferSize(or(o.WriteBuffer, 8<<10)),
		grpc.WithDisableServiceConfig(), // no service configuration from DNS
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
