package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/dragoman-hub/dragoman/core"
)

var losses = describe("dragoman_translation_losses_total",
	"Events of ended tasks that the dialect they went to folds or refuses.", "from", "to", "kind", "how")

// collectLosses reports what was folded and refused between each pair of dialects. The tables of
// the dialects say what becomes of each kind.
func (c *collector) collectLosses(counter func(*prometheus.Desc, float64, ...string)) {
	lost := func(from, to string, k core.Kind, how core.Handling, n uint64) {
		if how == core.Folded || how == core.Refused {
			counter(losses, float64(n), label(from), label(to), k.String(), how.String())
		}
	}
	for x, n := range c.hub.Crossings() {
		// In the two directions there are different kinds, so no series comes twice, not even
		// where both sides speak one dialect.
		switch {
		case x.Kind == core.KindOpened || x.Kind == core.KindAssigned:
			// Every task has them: how often they are folded says nothing.
		case x.Kind.ForAgent():
			lost(x.Requester, x.Agent, x.Kind, c.dialects[x.Agent].ToAgent[x.Kind].How, n)
		default:
			lost(x.Agent, x.Requester, x.Kind, c.dialects[x.Requester].ToRequester[x.Kind].How, n)
		}
	}
}
