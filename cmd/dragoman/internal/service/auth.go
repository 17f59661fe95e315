package service

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/dragoman-hub/dragoman/adapters/mcp"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/transports/web"
)

// principalKey is where the context of a request has who sends it.
type principalKey struct{}

// principalOf is who sends a request: who it authenticated as, else whoever comes to
// this door of an open hub.
func principalOf(ctx context.Context, otherwise core.Principal) core.Principal {
	if p, ok := ctx.Value(principalKey{}).(core.Principal); ok && p.Authenticated {
		return p
	}
	return otherwise
}

// openPath reports whether a path of the HTTP listener needs no token. Those tell whether
// the hub is there, and nothing of it; MCP has tokens of its own beside those of the hub.
func openPath(path string) bool {
	switch path {
	case "/healthz", "/readyz", gatewayHealth, gatewayReady, mcp.Path:
		return true
	}
	return strings.HasPrefix(path, mcp.Path+"/")
}

// besides lets everybody through to the paths that are open, and to the others those
// whom authenticate lets in.
func (s *Service) besides(open func(path string) bool) func(next http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		known := s.authenticate(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if open(r.URL.Path) {
				next.ServeHTTP(w, r)
				return
			}
			known.ServeHTTP(w, r)
		})
	}
}

// authenticate lets those through to a door of HTTP who may come in, and answers the
// rest before anything is upgraded.
func (s *Service) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := s.tokens.Check(r.Header.Values("Authorization"))
		if err != nil {
			s.hub.Count("auth.refused")
			s.log.Info("a request was refused", "path", pathOf(r), "status", http.StatusUnauthorized, "detail", err.Error())
			s.unauthorized(w, r, core.AsFault(err))
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), principalKey{}, p)))
	})
}

// unauthorized answers a request of nobody knows whom, in the form that errors have at
// its door. That of a Parallax agent is in the page of Parallax.
func (s *Service) unauthorized(w http.ResponseWriter, r *http.Request, why *core.Fault) {
	w.Header().Set("WWW-Authenticate", "Bearer")
	flat := map[string]string{"error": why.Message}
	switch {
	case r.URL.Path == ACPPath && s.acp != nil: // pi-server is served at any path, without the others too
		s.acp.Refuse(w, why)
		return
	case strings.HasPrefix(r.URL.Path, ControlPath+"/"):
		flat["code"] = parallax.CodeOf(why)
	case r.URL.Path != ParallaxPath:
		web.Problem(w, http.StatusUnauthorized, string(why.Code), why.Message)
		return
	}
	body, _ := json.Marshal(flat) // texts always encode
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnauthorized)
	_, _ = w.Write(body) // the peer may have gone
}

// healthService is open to everybody, as /healthz is.
const healthService = "/grpc.health.v1.Health/"

// admit finds out who makes a gRPC call. The error is a status.
func (s *Service) admit(ctx context.Context, method string) (context.Context, error) {
	if strings.HasPrefix(method, healthService) {
		return ctx, nil
	}
	p, err := s.tokens.Check(metadata.ValueFromIncomingContext(ctx, "authorization"))
	if err != nil {
		s.hub.Count("auth.refused")
		s.log.Info("a call was refused", "method", method, "detail", err.Error())
		return nil, status.Error(codes.Unauthenticated, core.AsFault(err).Message)
	}
	return context.WithValue(ctx, principalKey{}, p), nil
}

// authorize reads the file of tokens, and puts what stands there into force: those
// whose tokens are gone, or say something else of them now, are sent away.
func (s *Service) authorize(path string) error {
	list, err := readTokens(path)
	if err != nil {
		return err
	}
	s.tokens.Replace(list)
	if s.hub != nil {
		s.hub.Expel(s.tokens.Knows)
		s.admitToMCP()
	}
	return nil
}

// admission is somebody who may use a token of the hub at the door of MCP.
type admission struct {
	owner core.Principal
	leave func()
}

// admitToMCP lets those who have a token of the hub use it at the door of MCP.
func (s *Service) admitToMCP() {
	for hash, at := range s.atMCP {
		if owner, known := s.tokens.Owner(hash); !known || owner != at.owner {
			at.leave()
			delete(s.atMCP, hash)
		}
	}
	for _, hash := range s.tokens.Hashes() {
		if _, here := s.atMCP[hash]; !here {
			owner, _ := s.tokens.Owner(hash)
			s.atMCP[hash] = admission{owner, s.mcp.Admit(hash, owner)}
		}
	}
}
