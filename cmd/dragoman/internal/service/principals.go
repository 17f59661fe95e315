package service

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster"
	"github.com/dragoman-hub/dragoman/core/rpc"
)

// registrar is the authenticator as the hub sees it.
type registrar struct{ *Service }

// Principals implements [hub.Registrar].
func (r registrar) Principals() []core.KnownPrincipal { return r.auth.Principals() }

// Admit implements [hub.Registrar].
func (r registrar) Admit(ctx context.Context, principal string, approved bool) error {
	decide := r.auth.Revoke
	if approved {
		decide = r.auth.Approve
	}
	if err := decide(ctx, principal); err != nil {
		return err
	}
	r.hub.Expel(r.knows)
	return r.tellPrincipal(ctx, principal)
}

// What hubs tell each other of principals that registered: a record that has changed, and all of them.
const (
	changedMatter    rpc.Method[[]byte, bool]              = "principals.changed"
	registeredMatter rpc.Method[string, registeredRecords] = "principals.registered"
)

// registeredRecords are a page of records, and after what the next one begins; "" at the end.
type registeredRecords struct {
	Records [][]byte `json:"records"`
	Next    string   `json:"next,omitempty"`
}

// answerPrincipals has the hub hear of principals that registered at others, or were decided on there.
func (s *Service) answerPrincipals() {
	changedMatter.Answer(s.hub, func(ctx context.Context, _ core.Principal, record []byte) (bool, error) {
		err := s.auth.Learn(ctx, [][]byte{record})
		s.hub.Expel(s.knows)
		return err == nil, err
	})
	registeredMatter.Answer(s.hub, func(_ context.Context, _ core.Principal, after string) (r registeredRecords, _ error) {
		r.Records, r.Next = s.auth.Registered(after)
		return r, nil
	})
}

// telling is who tells other hubs of principals.
var telling = core.Principal{ID: "hub", Operator: true, Component: true}

// tellPrincipal tells the other hubs of a principal that has changed, whose sessions end there if it
// was revoked. It returns a retryable Fault that names those that do not answer.
func (s *Service) tellPrincipal(ctx context.Context, principal string) error {
	record, known := s.auth.Record(principal)
	if !known {
		return nil
	}
	_, missing := changedMatter.AskAll(ctx, s.hub, telling, record)
	missing = slices.DeleteFunc(missing, s.isGone) // it reads that when it starts
	if len(missing) > 0 {
		f := core.NewFault(core.CodeUnreachable, "it holds, but the hubs %s do not say that they know it: repeat it", strings.Join(missing, ", "))
		f.Retryable = true
		return f
	}
	return nil
}

// isGone reports whether another hub is not up.
func (s *Service) isGone(hub string) bool {
	hubs, _ := s.Cluster().Hubs()
	return slices.ContainsFunc(hubs, func(h cluster.Hub) bool { return h.Name == hub && h.State == cluster.Gone })
}

// tellRegistered tells the other hubs of a principal that has registered here. Those that do not
// answer find it when it comes to them.
func (s *Service) tellRegistered(ctx context.Context, principal string) {
	if s.hub != nil {
		_ = s.tellPrincipal(ctx, principal)
	}
}

// learnPrincipals learns from the other hubs which principals have registered while this one was away,
// once it hears them.
func (s *Service) learnPrincipals(ctx context.Context) {
	const again = time.Second
	for !s.Cluster().HasQuorum() || !s.fetchPrincipals(ctx) {
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return
		}
	}
	s.hub.Expel(s.knows)
}

// fetchPrincipals reports whether all hubs that are connected have told all of theirs.
func (s *Service) fetchPrincipals(ctx context.Context) (all bool) {
	for after := ""; ; {
		answers, missing := registeredMatter.AskAll(ctx, s.hub, telling, after)
		next := ""
		for _, a := range answers {
			if err := s.auth.Learn(ctx, a.Out.Records); err != nil {
				return false
			}
			if a.Out.Next != "" && (next == "" || a.Out.Next < next) {
				next = a.Out.Next
			}
		}
		if next == "" {
			return len(answers) > 0 || len(missing) == 0
		}
		after = next
	}
}
