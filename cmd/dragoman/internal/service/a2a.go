package service

import (
	"context"
	"fmt"
	"net/http"

	"github.com/dragoman-hub/dragoman/adapters/a2a"
	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/edge"
	"github.com/dragoman-hub/dragoman/core/webhook"
)

// a2aState is shared by all A2A clients.
type a2aState struct {
	signer *a2a.Signer     // nil if cards are not signed
	sender *webhook.Sender // nil if nothing is posted
	server *a2a.Server     // nil without a listener
}

// openA2A reads the key that cards are signed with.
func (s *Service) openA2A(context.Context) error {
	path := s.config.A2A.SigningKey
	if path == "" {
		return nil
	}
	text, err := edge.ReadFile(path)
	if err == nil {
		s.a2a.signer, err = a2a.NewSigner(text)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", s.config.At("a2a.signing_key"), path, err)
	}
	return nil
}

// mountA2A serves clients of A2A.
func (s *Service) mountA2A(l *listeners) {
	if l.http == nil && l.grpc == nil {
		return
	}
	c := s.config.A2A
	if targets, err := webhook.ParseTargets(c.PushTargets); err == nil && targets != webhook.TargetsNone {
		s.a2a.sender = webhook.New(targets)
	}
	s.a2a.server = a2a.New(s.hub, a2a.Options{
		Principal: func(r *http.Request) (core.Principal, error) {
			return principalOf(r.Context(), core.Principal{ID: "local", Dialect: wire.Dialect, Operator: true}), nil
		},
		URL: c.URL, GRPC: s.a2aOverGRPC, Bearer: !s.auth.Open(), Version: Version, Deadline: c.Deadline, MaxBodyBytes: c.BodyBytes,
		Signer: s.a2a.signer, Webhooks: s.a2a.sender, Log: s.log,
	})
	if l.grpc != nil {
		s.a2a.server.Register(l.grpc)
	}
	if l.http != nil {
		s.mountA2AOverHTTP(l.http)
	}
}

// a2aOverGRPC returns where the sender of a request reaches gRPC, for cards; "" behind a proxy, whose
// address for it the hub does not know.
func (s *Service) a2aOverGRPC(r *http.Request) string {
	if s.config.A2A.URL != "" {
		return ""
	}
	return s.bound.reachedBy(r).GRPC
}

func (s *Service) mountA2AOverHTTP(l *httpListener) {
	const push = "taskPushNotificationConfig" // with the credentials of its receiver
	server := s.framed(wire.Dialect, s.a2a.server, []string{"params", "configuration", push}, []string{"configuration", push})
	l.Handle(a2a.Path, server)
	l.Handle(a2a.Path+"/*", server)
	l.Handle(wire.CardPath, s.a2a.server)
	refuse := func(w http.ResponseWriter, err error) {
		w.Header().Set("Content-Type", wire.MediaJSON)
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write(wire.ErrorOf(err).Body()) // the client may have gone
	}
	for _, path := range []string{a2a.Path, a2a.Path + "/", wire.CardPath} {
		l.refuse(path, refuse)
	}
}

// drainA2A makes the deliveries that are due while connections close, in the same time.
func (s *Service) drainA2A(context.Context) {
	if s.a2a.server == nil {
		return
	}
	s.a2a.server.Close()
	if s.a2a.sender == nil {
		return
	}
	s.conns.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		if lost := s.a2a.sender.Close(ctx); len(lost) > 0 {
			s.log.Warn("push notifications were lost: their queue is in memory", "notifications", len(lost))
		}
	})
}
