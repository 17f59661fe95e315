package service

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"
	"google.golang.org/grpc/peer"

	"github.com/dragoman-hub/dragoman/adapters/mcp"
	"github.com/dragoman-hub/dragoman/core"
)

// newMCP makes the door of MCP. On an open hub those without a token are one of
// their own.
func (s *Service) newMCP() *mcp.Server {
	c := s.config.MCP
	var anonymous core.Principal
	if s.tokens.Open() {
		anonymous.ID = mcp.Name
	}
	return mcp.New(s.hub, mcp.Options{
		Anonymous: anonymous, Version: Version, Log: s.log,
		Deadline: c.Deadline, CallTimeout: c.CallTimeout, MaxBodyBytes: c.BodyBytes, MaxCalls: c.Calls,
	})
}

func (s *Service) mountMCP(r chi.Router) {
	r.Handle(mcp.Path, s.mcp)
	r.Handle(mcp.Path+"/*", s.mcp)
}

// mcpEndpoint is where the agent at the other end of a gRPC stream reaches MCP; ""
// if it cannot.
func (s *Service) mcpEndpoint(stream context.Context) string {
	p, ok := peer.FromContext(stream)
	if !ok {
		p = new(peer.Peer)
	}
	return cmp.Or(s.config.MCP.Endpoint, endpoint(s.bound.HTTP, p.LocalAddr, p.Addr))
}

// endpoint is the address of MCP for somebody who came from an address to one of
// ours and will come again to the HTTP listener that is bound to a third.
func endpoint(bound string, to, from net.Addr) string {
	at := reached(bound, to, from)
	if at == "" {
		return ""
	}
	return (&url.URL{Scheme: "http", Host: at, Path: mcp.Path}).String()
}

// pathOf is the path of a request without the token that may stand in it.
func pathOf(r *http.Request) string {
	if strings.HasPrefix(r.URL.Path, mcp.Path+"/") {
		return mcp.Path + "/…"
	}
	return r.URL.Path
}
