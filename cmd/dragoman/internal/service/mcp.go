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
	"github.com/dragoman-hub/dragoman/core/access"
)

// mcpState is shared by all MCP connections.
type mcpState struct {
	server *mcp.Server
	// admitted has the hub tokens that MCP accepts, by hash.
	admitted map[access.Hash]admission
}

// openMCP creates the endpoint. On an open hub, clients without a token share one principal.
func (s *Service) openMCP(context.Context) error {
	c := s.config.MCP
	var anonymous core.Principal
	if s.tokens.Open() {
		anonymous.ID = mcp.Name
	}
	s.mcp.server = mcp.New(s.hub, mcp.Options{
		Anonymous: anonymous, Endpoint: c.Endpoint, Version: Version, Log: s.log,
		Deadline: c.Deadline, CallTimeout: c.CallTimeout, MaxBodyBytes: c.BodyBytes, MaxCalls: c.Calls,
	})
	s.admitToMCP()
	return nil
}

// mountMCP serves the endpoint, which checks tokens itself.
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

// admission is a token of the hub that MCP accepts.
type admission struct {
	owner core.Principal
	leave func()
}

// admitToMCP makes MCP accept exactly the valid tokens of the hub.
func (s *Service) admitToMCP() {
	for hash, at := range s.mcp.admitted {
		if owner, known := s.tokens.Owner(hash); !known || owner != at.owner {
			at.leave()
			delete(s.mcp.admitted, hash)
		}
	}
	for _, hash := range s.tokens.Hashes() {
		if _, here := s.mcp.admitted[hash]; !here {
			owner, _ := s.tokens.Owner(hash)
			s.mcp.admitted[hash] = admission{owner, s.mcp.server.Admit(hash, owner)}
		}
	}
}
