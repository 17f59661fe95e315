package service

import (
	"context"
	"net/http"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/credentials"
	"github.com/dragoman-hub/dragoman/core"
)

// principalKey is the context key of the principal that sends a request.
type principalKey struct{}

// principalOf returns the authenticated principal of a request, or otherwise on an open hub.
func principalOf(ctx context.Context, otherwise core.Principal) core.Principal {
	if p, ok := ctx.Value(principalKey{}).(core.Principal); ok && p.Authenticated {
		return p
	}
	return otherwise
}

// authenticate passes on requests with a valid token, and all requests for open paths. It
// answers the others before an upgrade.
func (s *Service) authenticate(at *httpListener) func(next http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if at.isOpen(r.URL.Path) {
				next.ServeHTTP(w, r)
				return
			}
			p, err := s.tokens.Check(r.Header.Values("Authorization"))
			if err != nil {
				s.hub.Count("auth.refused")
				s.log.Info("a request was refused", "path", pathOf(r), "status", http.StatusUnauthorized, "detail", err.Error())
				w.Header().Set("WWW-Authenticate", "Bearer")
				at.refusalAt(r.URL.Path)(w, err)
				return
			}
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), principalKey{}, p)))
		})
	}
}

// healthService needs no token, like the HTTP health paths.
const healthService = "/grpc.health.v1.Health/"

// admit authenticates a gRPC call. Its error is a status.
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

// authorize reads the token file and applies it. Connections whose token was removed or
// changed are closed.
func (s *Service) authorize(path string) error {
	list, err := credentials.ReadTokens(path)
	if err != nil {
		return err
	}
	s.tokens.Replace(list)
	if s.hub != nil {
		s.hub.Expel(s.knows)
		s.admitToMCP()
	}
	return nil
}
