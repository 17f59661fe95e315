package auth

import (
	"cmp"
	"context"
	"encoding/hex"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// Listed is a principal in a list, once for each of its credentials. Those who connect with a
// certificate or a JWT are not in it: the hub does not know them before.
type Listed struct {
	Principal string `json:"principal"`
	// Credential is token, ssh_key (of the settings) or registered (an SSH key that registered
	// itself).
	Credential string             `json:"credential"`
	Status     Status             `json:"status"`
	Kind       core.PrincipalKind `json:"kind,omitzero"`
	Roles      []string           `json:"roles,omitempty"`
	Agents     []string           `json:"agents,omitempty"`
	Operator   bool               `json:"operator,omitempty"`
	// Fingerprint is that of an SSH key.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Since is when a key registered, Expires when a token does.
	Since   time.Time `json:"since,omitzero"`
	Expires time.Time `json:"expires,omitzero"`
}

// Principals returns the known principals: those that wait for approval first, then by name.
func (a *Authenticator) Principals() []Listed {
	all := a.named(a.current.Load())
	for _, one := range a.registered.all() {
		all = append(all, Listed{
			Principal: one.Principal, Credential: "registered", Status: one.Status, Fingerprint: one.Fingerprint, Since: one.Since,
		})
	}
	slices.SortFunc(all, func(x, y Listed) int {
		return cmp.Or(compareBool(y.Status == StatusPending, x.Status == StatusPending), cmp.Compare(x.Principal, y.Principal),
			cmp.Compare(x.Credential, y.Credential), cmp.Compare(x.Fingerprint, y.Fingerprint))
	})
	return all
}

// named returns the principals in the settings.
func (a *Authenticator) named(s *state) (all []Listed) {
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

func listed(p core.Principal, credential string) Listed {
	one := Listed{Principal: p.ID, Credential: credential, Status: StatusApproved, Operator: p.Operator, Expires: p.Until}
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
	return a.decide(ctx, principal, StatusApproved)
}

// Revoke refuses the principal of a registered key from now on. It returns once that is
// stored; after that Knows does not know its sessions, which the caller ends. The error is a
// Fault.
func (a *Authenticator) Revoke(ctx context.Context, principal string) error {
	return a.decide(ctx, principal, StatusRevoked)
}

func (a *Authenticator) decide(ctx context.Context, principal string, status Status) error {
	if _, registered := a.registered.named(principal); !registered && a.isNamed(a.current.Load(), principal) {
		return core.NewFault(core.CodeInvalid, "the principal %q is in the settings: change auth.tokens or auth.ssh_keys, and reload the hub with SIGHUP", principal)
	}
	return a.registered.set(ctx, principal, status)
}
