package service

import (
	"cmp"
	"context"
	"encoding/hex"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"google.golang.org/grpc/peer"

	"github.com/dragoman-hub/dragoman/adapters/mcp"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/transports/web"
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
		anonymous = core.Principal{ID: mcp.Name}
	}
	s.mcp.server = mcp.New(s.hub, mcp.Options{
		Forward:   s.forwarder(),
		Anonymous: anonymous, Authenticate: s.authenticateMCP, Judged: s.judgedMCP, Endpoint: c.Endpoint, Version: Version, Log: s.log,
		Deadline: c.Deadline, CallTimeout: c.CallTimeout, MaxBodyBytes: c.BodyBytes,
	})
	return nil
}

// judgedMCP notes who sends a request, or why it was refused.
func (s *Service) judgedMCP(r *http.Request, p core.Principal, err error) {
	s.came(p, mcp.Name, r.RemoteAddr, err)
	if err != nil {
		s.hub.Count("auth.refused")
		return
	}
	web.Authenticated(r)
}

// mountMCP serves the endpoint, which checks credentials itself: those of agents are its own.
func (s *Service) mountMCP(l *listeners) {
	if l.http == nil {
		return
	}
	server := s.framed(mcp.Name, s.mcp.server)
	l.http.Handle(mcp.Path, server)
	l.http.Handle(mcp.Path+"/*", server)
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
	return cmp.Or(s.config.MCP.Endpoint, endpoint(s.tls.on(), s.bound.HTTP, p.LocalAddr, p.Addr))
}

// endpoint returns the URL of MCP at the bound HTTP address, for a peer at from that is
// connected to our address to.
func endpoint(secure bool, bound string, to, from net.Addr) string {
	at := reached(bound, to, from)
	if at == "" {
		return ""
	}
	scheme := "http"
	if secure {
		scheme = "https"
	}
	return (&url.URL{Scheme: scheme, Host: at, Path: mcp.Path}).String()
}

// escape is a percent escape.
var escape = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// pathOf returns the path of a request, without a token that may be part of it. The path may
// be another spelling of that of MCP, which no route answers.
func pathOf(r *http.Request) string {
	text := r.URL.Path
	for escape.MatchString(text) { // each time it gets shorter
		text = escape.ReplaceAllStringFunc(text, func(one string) string {
			b, _ := hex.DecodeString(one[1:]) // the pattern has checked it
			return string(b)
		})
	}
	text = strings.ReplaceAll(text, `\`, "/")
	name := strings.TrimPrefix(mcp.Path, "/")
	segments := strings.Split(text, "/")
	for i, one := range segments {
		if strings.HasPrefix(strings.Map(lettersAlone, one), name) && strings.Join(segments[i+1:], "") != "" {
			return mcp.Path + "/…"
		}
	}
	return r.URL.Path
}

// lettersAlone maps letters to small ones and digits to themselves, and drops what is between them.
func lettersAlone(r rune) rune {
	if unicode.IsLetter(r) || unicode.IsDigit(r) {
		return unicode.ToLower(r)
	}
	return -1
}
