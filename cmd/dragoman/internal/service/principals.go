package service

import (
	"context"

	"github.com/dragoman-hub/dragoman/core"
)

// registrar is the authenticator as the hub sees it.
type registrar struct{ *Service }

// Principals implements [hub.Registrar].
func (r registrar) Principals() []core.KnownPrincipal { return r.auth.Principals() }

// Admit implements [hub.Registrar].
func (r registrar) Admit(ctx context.Context, principal string, approved bool) error {
	if approved {
		return r.auth.Approve(ctx, principal)
	}
	if err := r.auth.Revoke(ctx, principal); err != nil {
		return err
	}
	r.hub.Expel(r.knows)
	return nil
}
