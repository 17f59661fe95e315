package grpcserver

import (
	"context"
	"crypto/x509"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// PeerCertificates returns the verified chain of the client certificate of a call, leaf first;
// nil without one. ctx is that of the call, in Options.Admit too.
func PeerCertificates(ctx context.Context) []*x509.Certificate {
	from, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	known, _ := from.AuthInfo.(peerInfo)
	if info, ok := known.AuthInfo.(credentials.TLSInfo); ok && len(info.State.VerifiedChains) > 0 {
		return info.State.VerifiedChains[0]
	}
	return nil
}

// Proven reports whether Options.Admit has admitted an earlier call of the connection. ctx is
// that of a call.
func Proven(ctx context.Context) bool { return connectionOf(ctx).proven.Load() }

// peerInfo is what a call knows of its connection.
type peerInfo struct {
	credentials.AuthInfo
	*connection
}

// connectionOf returns the connection of a call.
func connectionOf(ctx context.Context) *connection {
	if from, ok := peer.FromContext(ctx); ok {
		if known, ok := from.AuthInfo.(peerInfo); ok {
			return known.connection
		}
	}
	return &connection{}
}

// handshake makes each connection known to its calls.
type handshake struct {
	credentials.TransportCredentials
	server *Server
}

// ServerHandshake implements [credentials.TransportCredentials]. Without TLS it returns the
// connection itself.
func (h handshake) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := h.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	return conn, peerInfo{info, h.server.accepted(raw)}, nil
}

// Clone implements [credentials.TransportCredentials].
func (h handshake) Clone() credentials.TransportCredentials {
	return handshake{h.TransportCredentials.Clone(), h.server}
}
