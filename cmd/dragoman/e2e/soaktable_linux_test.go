package e2e

import (
	"fmt"
	"strings"
)

// table shows the figures of all slices, with a verdict on what is judged.
func (s *soakSamples) table() string {
	var b strings.Builder
	for _, span := range soakSpans(s.all) {
		tableOf(&b, span)
	}
	return b.String()
}

func tableOf(b *strings.Builder, span soakSpan) {
	verdict := "judged"
	if span.unjudged != "" {
		verdict = "not judged: " + span.unjudged
	}
	fmt.Fprintf(b, "%s: %d samples, %s\n", span.name, len(span.samples), verdict)
	if len(span.samples) == 0 {
		return
	}
	fmt.Fprintf(b, "%-12s %10s %10s %10s %12s %10s\n", "", "mean", "least", "most", "an hour", "± ")
	mean := meanOf(span.samples).values
	for _, f := range soakFigures {
		t := span.trends[f.name]
		least, most := span.samples[0].values[f.name], span.samples[0].values[f.name]
		for _, one := range span.samples {
			least, most = min(least, one.values[f.name]), max(most, one.values[f.name])
		}
		verdict := "flat"
		switch {
		case !f.bounded || span.unjudged != "":
			verdict = ""
		case t.grows(f.slack):
			verdict = "GROWS"
		case !t.flat(f.slack):
			verdict = "falls"
		}
		fmt.Fprintf(b, "%-12s %10.1f %10.1f %10.1f %+12.2f %10.2f %-4s %s\n", f.name, mean[f.name]/f.size, least/f.size, most/f.size, t.slope/f.size, t.err/f.size, f.unit, verdict)
	}
}
