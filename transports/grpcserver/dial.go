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

// DialOptions are the settings of a client's connection.
type DialOptions struct {
	// TLS, if set, encrypts the connection; otherwise it is plain text.
	TLS *tls.Config
}

// Dial connects to a server and waits for an answer. It asks for the server's health, but
// accepts any answer. The error is a gRPC status, UNAVAILABLE if there is no server, or the
// error of ctx. The caller closes the connection; until then gRPC reconnects by itself.
func Dial(ctx context.Context, target string, o DialOptions) (*grpc.ClientConn, error) {
	creds := insecure.NewCredentials()
	if o.TLS != nil {
		creds = credentials.NewTLS(o.TLS)
	}
	cc, err := grpc.NewClient(
		target,
		grpc.WithTransportCredentials(creds),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(DefaultMaxMessageBytes),
			grpc.MaxCallSendMsgSize(math.MaxInt32), // Send checks the size before it writes
		),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time:    20 * time.Second, // of silence with an open call
			Timeout: 10 * time.Second,
		}),
		grpc.WithStaticStreamWindowSize(window),
		grpc.WithStaticConnWindowSize(window),
		grpc.WithReadBufferSize(bufferBytes),
		grpc.WithWriteBufferSize(bufferBytes),
		grpc.WithDisableServiceConfig(), // no service configuration from DNS
	)
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
