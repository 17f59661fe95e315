package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
)

var losses = describe("dragoman_translation_losses_total",
	"Events of ended tasks that the dialect they went to folds or refuses.", "from", "to", "kind", "how")

// collectLosses reports what was folded and refused between each pair of dialects. In the two
// directions there are different kinds, so no series comes twice, not even where both sides speak one
// dialect.
func (c *collector) collectLosses(counter func(*prometheus.Desc, float64, ...string)) {
	for x, n := range c.hub.Crossings() {
		how := c.opts.Translations.Lost(x.Requester, x.Agent, x.Kind)
		if how == 0 {
			continue
		}
		from, to := x.Agent, x.Requester
		if x.Kind.ForAgent() {
			from, to = to, from
		}
		counter(losses, float64(n), label(from), label(to), x.Kind.String(), how.String())
	}
}
