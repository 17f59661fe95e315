package auth

import (
	"cmp"
	"context"
	"encoding/hex"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
)

// Principals returns the known principals: those that wait for approval first, then by name.
func (a *Authenticator) Principals() []core.KnownPrincipal {
	all := a.named(a.current.Load())
	for _, one := range a.registered.all() {
		all = append(all, core.KnownPrincipal{
			Principal: one.Principal, Credential: "registered", Status: one.Status, Fingerprint: one.Fingerprint, Since: one.Since,
		})
	}
	slices.SortFunc(all, func(x, y core.KnownPrincipal) int {
		return cmp.Or(compareBool(y.Status == core.PrincipalPending, x.Status == core.PrincipalPending), cmp.Compare(x.Principal, y.Principal),
			cmp.Compare(x.Credential, y.Credential), cmp.Compare(x.Fingerprint, y.Fingerprint))
	})
	return all
}

// named returns the principals in the settings.
func (a *Authenticator) named(s *state) (all []core.KnownPrincipal) {
	for _, p := range a.tokens.Owners() {
		all = append(all, listed(p, "token"))
	}
	for key, p := range s.keys {
		one := listed(p, "ssh_key")
		one.Fingerprint = hex.EncodeToString(key[:])
		all = append(all, one)
	}
	return all
}

func listed(p core.Principal, credential string) core.KnownPrincipal {
	one := core.KnownPrincipal{Principal: p.ID, Credential: credential, Status: core.PrincipalApproved, Operator: p.Operator, Expires: p.Until}
	if c := p.Credential; c != nil {
		one.Kind, one.Roles, one.Agents = c.Kind, c.Roles, c.Agents
	}
	return one
}

func compareBool(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return 1
	}
	return -1
}

// Approve lets the principal of a registered key connect, one that was revoked too. It returns
// once that is stored. The error is a Fault.
func (a *Authenticator) Approve(ctx context.Context, principal string) error {
	return a.decide(ctx, principal, core.PrincipalApproved)
}

// Revoke refuses the principal of a registered key from now on. It returns once that is
// stored; after that Knows does not know its sessions, which the caller ends. The error is a
// Fault.
func (a *Authenticator) Revoke(ctx context.Context, principal string) error {
	return a.decide(ctx, principal, core.PrincipalRevoked)
}

func (a *Authenticator) decide(ctx context.Context, principal string, status core.PrincipalStatus) error {
	if _, registered := a.registered.named(principal); !registered && a.isNamed(a.current.Load(), principal) {
		return core.NewFault(core.CodeInvalid, "the principal %q is in the settings: change auth.tokens or auth.ssh_keys, and reload the hub with SIGHUP", principal)
	}
	return a.registered.set(ctx, principal, status)
}
