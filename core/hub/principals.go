package hub

import (
	"context"

	"github.com/dragoman-hub/dragoman/core"
)

// Registrar knows the principals that may connect. It is safe for concurrent use.
type Registrar interface {
	// Principals returns the known principals at once.
	Principals() []core.KnownPrincipal
	// Admit decides on a principal that registered itself, and returns once that is stored and
	// the sessions of a revoked one have ended. Its error is a Fault.
	Admit(ctx context.Context, principal string, approved bool) error
}

// Principals returns the principals that may connect, and those that wait or were revoked. It
// returns a not_authorized Fault unless the principal may operate.
func (h *Hub) Principals(p core.Principal) (all []core.KnownPrincipal, err error) {
	err = h.list(p, core.ListPrincipals, func() error {
		if h.registrar != nil {
			all = h.registrar.Principals()
		}
		return nil
	})
	return all, err
}

// Admit decides on a principal that registered itself. It returns a not_authorized Fault unless
// the principal may operate, an invalid one for a principal that did not register, an unsupported
// one where nobody can, and a retryable one if the decision could not be stored.
func (h *Hub) Admit(ctx context.Context, p core.Principal, c core.Admit) error {
	_, err := h.do(ctx, nil, core.Call{Principal: p, Command: c}, func() error {
		if h.registrar == nil {
			return core.NewFault(core.CodeUnsupported, "nobody registers at this hub")
		}
		return h.registrar.Admit(ctx, c.Principal, c.Approved)
	})
	return err
}
