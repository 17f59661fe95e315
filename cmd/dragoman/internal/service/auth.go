package service

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/dragoman-hub/dragoman/adapters/auth"
	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/credentials"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
	"github.com/dragoman-hub/dragoman/transports/web"
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

// authenticate passes on requests with a valid credential, and all requests for open paths. It
// answers the others before their body is read.
func (s *Service) authenticate(at *httpListener, bare bool) func(next http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if at.isOpen(r.URL.Path) {
				next.ServeHTTP(w, r)
				return
			}
			if p, visiting := visitorOf(r.Context()); visiting {
				next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), principalKey{}, p)))
				return
			}
			given := presentedIn(r)
			given.Bare = bare
			p, err := s.auth.Authenticate(r.Context(), given)
			s.came(p, "http", r.RemoteAddr, err)
			if err != nil {
				why := core.AsFault(err)
				s.hub.Count("auth.refused")
				s.log.Info("a request was refused", "path", pathOf(r), "code", why.Code, "detail", why.Message)
				s.refusalPace.wait(r.Context(), remoteOf(r), s.hub.Count)
				if why.Code == core.CodeUnauthenticated {
					w.Header().Set("WWW-Authenticate", "Bearer")
				}
				at.refusalAt(r.URL.Path)(w, err)
				return
			}
			web.Authenticated(r)
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), principalKey{}, p)))
		})
	}
}

// authenticateMCP authenticates a request to the endpoint of MCP, which has tokens of its own too.
func (s *Service) authenticateMCP(r *http.Request) (core.Principal, error) {
	if p, visiting := visitorOf(r.Context()); visiting && p.ID != "" {
		return p, nil
	}
	p, err := s.auth.Authenticate(r.Context(), presentedIn(r))
	if err != nil {
		s.refusalPace.wait(r.Context(), remoteOf(r), s.hub.Count)
	}
	return p, err
}

// remoteOf returns the address that a request comes from; zero if it has none.
func remoteOf(r *http.Request) netip.Addr {
	at, _ := netip.ParseAddrPort(r.RemoteAddr)
	return at.Addr()
}

// presentedIn returns the credentials of a request.
func presentedIn(r *http.Request) auth.Credentials {
	given := auth.Presented(r.Header.Values)
	given.Certificates = web.PeerCertificates(r)
	return given
}

// admit authenticates a gRPC call. Its error is a status.
func (s *Service) admit(ctx context.Context, method string) (context.Context, error) {
	given := auth.Presented(func(name string) []string { return metadata.ValueFromIncomingContext(ctx, name) })
	given.Certificates = grpcserver.PeerCertificates(ctx)
	p, err := s.auth.Authenticate(ctx, given)
	s.came(p, "grpc", callerOf(ctx).String(), err)
	if err != nil {
		why := core.AsFault(err)
		s.hub.Count("auth.refused")
		s.log.Info("a call was refused", "method", method, "code", why.Code, "detail", why.Message)
		if !grpcserver.Proven(ctx) { // to wait here delays all calls of the connection
			s.refusalPace.wait(ctx, callerOf(ctx), s.hub.Count)
		}
		code := codes.Unauthenticated
		if why.Code == core.CodeNotAuthorized {
			code = codes.PermissionDenied
		}
		return nil, status.Error(code, why.Message)
	}
	return context.WithValue(ctx, principalKey{}, p), nil
}

// principalRecords is the log of the SSH keys that registered.
const principalRecords = "principals"

// openAuth makes the authenticator, and reads the rules and all files with credentials.
func (s *Service) openAuth(ctx context.Context) error {
	opts := auth.Options{Log: s.log, Count: func(name string) {
		if s.hub != nil {
			s.hub.Count(name)
		}
	}, Registered: s.records(principalRecords), OnRegistered: s.tellRegistered}
	if j, ok := s.journal.(*nats.Journal); ok {
		opts.Signatures = j.Once("signatures", "the SSH signatures of the last minutes, each of which is used once", auth.SignatureTime)
		if j.Claims() != nil {
			opts.Agreed = j.Claims()
		}
	}
	var err error
	if s.auth, err = auth.New(ctx, opts); err != nil {
		return fmt.Errorf("reading the registered principals: %w", err)
	}
	return s.authorize(s.config, s.tls.current.Load())
}

// authorize reads the files of credentials and the rules, and applies them. Connections whose
// credential was removed or changed are closed, and those that read what the rules no longer let
// them read. After an error nothing has changed.
func (s *Service) authorize(c config.Config, t *certificates) error {
	settings, err := credentials.ReadAuth(c.Auth)
	if err != nil {
		return err
	}
	if err := credentials.CheckNames(c, settings); err != nil {
		return err
	}
	settings.Reserved = credentials.Reserved(c)
	var table *policy.Table
	if c.Auth.Rules != "" {
		if table, err = credentials.ReadRules(c.Auth.Rules); err != nil {
			return err
		}
		for _, shadow := range table.Shadowed() {
			s.log.Warn("a rule never decides", "setting", "auth.rules", "detail", shadow.String())
		}
	}
	settings.Authorities, settings.Unix = t.clientAuthorities(), s.unixUsers()
	if s.hub != nil && table != nil {
		for _, a := range s.hub.Agents(core.Principal{Operator: true}) {
			policy.Anticipate(table, a.Card)
		}
	}
	s.auth.Apply(settings)
	s.rights.Replace(table)
	if s.hub != nil {
		s.hub.Expel(s.knows)
		s.hub.Recheck()
	}
	return nil
}
