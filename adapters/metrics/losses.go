package metrics

import "github.com/prometheus/client_golang/prometheus"

var losses = describe("dragoman_translation_losses_total",
	"Events of ended tasks that the dialect they went to folds or refuses.", "from", "to", "kind", "how")

// collectLosses reports what was folded and refused between each pair of dialects.
func (c *collector) collectLosses(counter func(*prometheus.Desc, float64, ...string)) {
	for _, l := range c.hub.Losses(c.opts.Translations) {
		counter(losses, float64(l.N), label(l.From), label(l.To), l.Kind, l.How)
	}
}
