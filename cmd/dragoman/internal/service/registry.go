package service

import (
	"context"
	"io"
	"net"
	"net/netip"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/adapters/parallax/registry"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/proto/parallax/confidence"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

// newRegistry serves Parallax agents that are gRPC servers themselves.
func (s *Service) newRegistry() *registry.Registry {
	return registry.New(s.hub, registry.Options{
		Principal: func(ctx context.Context) core.Principal { return principalOf(ctx, core.Principal{}) },
		Connect:   connectBack,
		Serve: func(ctx context.Context, stream parallax.GatewayConn, ended func()) {
			opts := s.gatewayOptions(ctx)
			s.hold(func() {
				defer ended()
				parallax.ServeGateway(s.ctx, s.hub, stream, opts)
			})
		},
	})
}

// lookupTime bounds the DNS lookup of a host name.
const lookupTime = 5 * time.Second

// connectBack connects to the agent at an endpoint, which must be at the address of the
// caller: otherwise anybody could make the hub call others.
func connectBack(ctx context.Context, endpoint string) (confidence.ConfidenceAgentClient, io.Closer, error) {
	host, port, err := net.SplitHostPort(endpoint)
	if err != nil || host == "" || port == "" {
		return nil, nil, core.NewFault(core.CodeInvalid, "%q is no address: send host:port, where the agent listens", endpoint)
	}
	ctx, done := context.WithTimeout(ctx, lookupTime)
	defer done()
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, nil, core.NewFault(core.CodeInvalid, "the host %q is unknown here: send the address where the agent listens", host)
	}
	caller := callerOf(ctx)
	i := slices.IndexFunc(all, func(ip netip.Addr) bool {
		ip = ip.Unmap()
		return ip == caller || ip.IsLoopback() && caller.IsLoopback()
	})
	if i < 0 {
		return nil, nil, core.NewFault(core.CodeInvalid, "the hub calls an agent back where it registers from, which is %s, and %s is elsewhere: set PARALLAX_AGENT_HOST, or use connectViaGateway", caller, host)
	}
	conn, err := grpc.NewClient("passthrough:///"+net.JoinHostPort(all[i].Unmap().String(), port),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(grpcserver.DefaultMaxMessageBytes)))
	if err != nil {
		return nil, nil, core.NewFault(core.CodeInvalid, "%q is no address: send host:port, where the agent listens", endpoint)
	}
	return confidence.NewConfidenceAgentClient(conn), conn, nil
}

// callerOf returns the address of the caller of a gRPC method.
func callerOf(ctx context.Context) netip.Addr {
	if from, ok := peer.FromContext(ctx); ok {
		if at, err := netip.ParseAddrPort(from.Addr.String()); err == nil {
			return at.Addr().Unmap()
		}
	}
	return netip.Addr{}
}
