package service

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"

	"google.golang.org/grpc/peer"

	"github.com/dragoman-hub/dragoman/adapters/mcp"
	"github.com/dragoman-hub/dragoman/core"
)

// mcpState is shared by all MCP connections.
type mcpState struct {
	server *mcp.Server
}

// openMCP creates the endpoint. On an open hub, clients without a token share one principal.
func (s *Service) openMCP(context.Context) error {
	c := s.config.MCP
	var anonymous core.Principal
	if s.auth.Open() {
		anonymous.ID = mcp.Name
	}
	s.mcp.server = mcp.New(s.hub, mcp.Options{
		Anonymous: anonymous, Authenticate: func(r *http.Request) (core.Principal, error) { return s.auth.Authenticate(r.Context(), presentedIn(r)) }, Endpoint: c.Endpoint, Version: Version, Log: s.log,
		Deadline: c.Deadline, CallTimeout: c.CallTimeout, MaxBodyBytes: c.BodyBytes, MaxCalls: c.Calls,
	})
	return nil
}

// mountMCP serves the endpoint, which checks credentials itself: those of agents are its own.
func (s *Service) mountMCP(l *listeners) {
	if l.http == nil {
		return
	}
	l.http.Handle(mcp.Path, s.mcp.server)
	l.http.Handle(mcp.Path+"/*", s.mcp.server)
	for _, path := range []string{mcp.MetadataPath, mcp.MetadataPath + mcp.Path, mcp.RegisterPath} {
		l.http.Handle(path, s.mcp.server.OAuth())
	}
	l.http.open(mcp.Path, mcp.Path+"/", mcp.MetadataPath, mcp.MetadataPath+mcp.Path, mcp.RegisterPath)
}

func (s *Service) drainMCP(context.Context) {
	if s.mcp.server != nil {
		s.mcp.server.Close()
	}
}

// mcpEndpoint returns the URL of MCP for the agent at the other end of a gRPC stream, "" if it
// cannot reach it.
func (s *Service) mcpEndpoint(stream context.Context) string {
	p, ok := peer.FromContext(stream)
	if !ok {
		p = new(peer.Peer)
	}
	return cmp.Or(s.config.MCP.Endpoint, endpoint(s.bound.HTTP, p.LocalAddr, p.Addr))
}

// endpoint returns the URL of MCP at the bound HTTP address, for a peer at from that is
// connected to our address to.
func endpoint(bound string, to, from net.Addr) string {
	at := reached(bound, to, from)
	if at == "" {
		return ""
	}
	return (&url.URL{Scheme: "http", Host: at, Path: mcp.Path}).String()
}

// pathOf returns the path of a request, without a token that may be part of it.
func pathOf(r *http.Request) string {
	if strings.HasPrefix(r.URL.Path, mcp.Path+"/") {
		return mcp.Path + "/…"
	}
	return r.URL.Path
}
