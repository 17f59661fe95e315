package registry

import (
	"context"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/rpc"
)

// An agent renews and ends its lease at any hub of the cluster. The hub where it registered has the
// lease, and calls the agent.

// change is what becomes of a lease.
type change struct {
	Lease string `json:"lease"`
	// End ends it, otherwise it is renewed. Endpoint, if it is set, is that which it must have.
	End      bool   `json:"end,omitempty"`
	Endpoint string `json:"endpoint,omitempty"`
}

const leaseMatter rpc.Method[change, bool] = "parallax.lease"

// answerLeases has the hub change leases that it has for other hubs.
func (r *Registry) answerLeases() {
	leaseMatter.Answer(r.hub, func(_ context.Context, by core.Principal, c change) (bool, error) { return r.change(by, c), nil })
}

// change changes a lease of a principal here. It reports false if there is none.
func (r *Registry) change(by core.Principal, c change) bool {
	l, here := r.lease(c.Lease, by)
	switch {
	case !here, c.Endpoint != "" && c.Endpoint != l.endpoint:
		return false
	case c.End:
		l.stream.stop()
	default:
		l.stream.heartbeat()
	}
	return true
}

// changeAnywhere changes a lease of a principal, at whichever hub it is.
func (r *Registry) changeAnywhere(ctx context.Context, by core.Principal, c change) bool {
	if r.change(by, c) {
		return true
	}
	answers, _ := leaseMatter.AskAll(ctx, r.hub, by, c) // the leases of a hub that is gone have ended
	for _, a := range answers {
		if a.Out {
			return true
		}
	}
	return false
}
