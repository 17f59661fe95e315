package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	soakWarmsUp = time.Hour        // of each slice are left out: until the lists of the latest tasks, threads, conversations and accounts are full
	leastJudged = 10 * time.Minute // behind that
	leastSlices = 6                // through whose means a line is judged
)

// soakSpan is a part of a soak through which the lines of its figures are fitted.
type soakSpan struct {
	name     string
	samples  []soakSample
	trends   map[string]trend // by figure
	unjudged string           // why its lines are not judged; "" if they are
}

// soakSpans are each slice, and the slices together: within them, since a restart takes back what a
// slice has lost, and from one to the next, for what it does not take back. The first minutes of a
// slice and its bursts are left out.
func soakSpans(all []soakSample) (spans []soakSpan) {
	var settled, means [][]soakSample
	for i := 0; i < len(all); {
		whole := all[i:]
		if next := slices.IndexFunc(whole, func(one soakSample) bool { return one.slice != all[i].slice }); next > 0 {
			whole = whole[:next]
		}
		i += len(whole)
		rest := slices.DeleteFunc(slices.Clone(whole), func(one soakSample) bool {
			return one.at-whole[0].at < soakWarmsUp.Seconds() || one.values["burst"] > 0
		})
		span := spanOf(fmt.Sprintf("slice %d", whole[0].slice), [][]soakSample{rest}, leastJudged)
		if i < len(all) {
			span.unjudged = "it is not the last slice"
		}
		if len(rest) < 3 { // it shows what there was
			span.samples = whole
		}
		spans = append(spans, span)
		if len(rest) > 0 {
			settled = append(settled, rest)
			means = append(means, []soakSample{meanOf(rest)})
		}
	}
	if len(spans) < 2 {
		return spans
	}
	spans = append(spans, spanOf("within all slices", settled, leastJudged))
	between := spanOf("from slice to slice", [][]soakSample{slices.Concat(means...)}, 0)
	if len(means) < leastSlices {
		between.unjudged = fmt.Sprintf("%d slices are longer than %v, want %d", len(means), soakWarmsUp, leastSlices)
	}
	return append(spans, between)
}

// spanOf fits a line for each figure, with one slope, through the means of groups of samples.
func spanOf(name string, groups [][]soakSample, least time.Duration) soakSpan {
	span := soakSpan{name: name, samples: slices.Concat(groups...), trends: map[string]trend{}}
	var length float64
	for _, f := range soakFigures {
		var x, y [][]float64
		for _, group := range groups {
			var hours, values []float64
			for _, one := range group {
				hours, values = append(hours, one.at/3600), append(values, one.values[f.name])
			}
			x, y = append(x, hours), append(y, values)
		}
		t := trendOf(x, y)
		span.trends[f.name], length = t, t.length
	}
	if length < least.Hours() {
		span.unjudged = fmt.Sprintf("%.1f min after the first %.0f of a slice, want %.0f", length*60, soakWarmsUp.Minutes(), least.Minutes())
	}
	return span
}

func meanOf(samples []soakSample) (mean soakSample) {
	mean.values = map[string]float64{}
	for _, one := range samples {
		mean.at += one.at / float64(len(samples))
		for name, v := range one.values {
			mean.values[name] += v / float64(len(samples))
		}
	}
	return mean
}

// judgeSoak names what grows, and why spans were not judged. No span was judged if judged is false.
func judgeSoak(spans []soakSpan) (growing, unjudged []string, judged bool) {
	for _, span := range spans {
		if span.unjudged != "" {
			unjudged = append(unjudged, span.name+": "+span.unjudged)
			continue
		}
		judged = true
		for _, f := range soakFigures {
			if t := span.trends[f.name]; f.bounded && t.grows(f.slack) {
				growing = append(growing, fmt.Sprintf("%s: %s grows by %.2f ± %.2f %s an hour", span.name, f.name, t.slope/f.size, t.err/f.size, f.unit))
			}
		}
	}
	return growing, unjudged, judged
}

// judge fails if a figure grows, and if a soak that is over was long enough to be judged and was not.
func (s *soakSamples) judge(t *testing.T, total time.Duration, over bool) {
	t.Helper()
	growing, unjudged, judged := judgeSoak(soakSpans(s.all))
	for _, grows := range growing {
		t.Error(grows)
	}
	switch {
	case judged:
	case over && total >= soakWarmsUp+leastJudged:
		t.Errorf("not judged: nothing was long enough: %s", strings.Join(unjudged, "; "))
	default:
		t.Logf("not judged: %s", strings.Join(unjudged, "; "))
	}
}

func TestSoakJudgesEverySlice(t *testing.T) {
	const flat = 100
	for _, tt := range []struct {
		name            string
		slices, minutes int
		rss             func(slice int, minute float64) float64 // in MiB
		grows           string                                  // the spans that do
		judged          bool
	}{
		{"a long slice that is flat", 1, 80, func(int, float64) float64 { return flat }, "", true},
		{"a long slice that grows", 1, 100, func(_ int, m float64) float64 { return flat + m }, "slice 1", true},
		{"a long slice that falls", 1, 100, func(_ int, m float64) float64 { return flat - m }, "", true},
		{"one that grows in its first minutes", 1, 100, func(_ int, m float64) float64 { return flat + 10*min(m, 10) }, "", true},
		{"one that grows in its last half", 1, 100, func(_ int, m float64) float64 { return flat + max(0, m-60) }, "slice 1", true},
		{"a short slice that grows", 1, 69, func(_ int, m float64) float64 { return flat + 10*m }, "", false},
		{"slices of 70 minutes that are flat", 32, 70, func(int, float64) float64 { return flat }, "", true},
		{"slices of 70 minutes that grow until the next one", 32, 70, func(_ int, m float64) float64 { return flat + m/2 }, "within all slices", true},
		{"slices of 70 minutes that begin higher each time", 32, 70, func(s int, _ float64) float64 { return float64(flat + s) }, "from slice to slice", true},
		{"three that begin higher each time", 3, 70, func(s int, _ float64) float64 { return float64(flat + s) }, "", true},
		{"slices of 70 minutes that differ by chance", 32, 70, func(s int, _ float64) float64 { return float64(flat + 7*s%11) }, "", true},
		{"a last slice that grows", 2, 100, func(s int, m float64) float64 { return flat + float64(s-1)*m }, "slice 2, within all slices", true},
		{"slices of 9 minutes that grow", 50, 9, func(_ int, m float64) float64 { return flat + 10*m }, "", false},
	} {
		var all []soakSample
		var at float64
		random := rand.New(rand.NewPCG(1, 2))
		for slice := 1; slice <= tt.slices; slice++ {
			for i := range tt.minutes*6 + 1 {
				minute, noise := float64(i)/6, 6*random.NormFloat64()
				v := map[string]float64{"rss": mebi * (tt.rss(slice, minute) + noise), "cpu": 10 * minute}
				if minute > float64(tt.minutes)-1 { // the last minute is a burst
					v["rss"], v["burst"] = v["rss"]+300*mebi, 1
				}
				all = append(all, soakSample{slice: slice, at: at + minute*60, values: v})
			}
			at = all[len(all)-1].at
		}
		growing, _, judged := judgeSoak(soakSpans(all))
		var got []string
		for _, g := range growing {
			name, what, _ := strings.Cut(g, ": ")
			if got = append(got, name); !strings.HasPrefix(what, "rss grows by ") {
				t.Errorf("%s: got %q, want rss to grow alone", tt.name, g)
			}
		}
		if strings.Join(got, ", ") != tt.grows || judged != tt.judged {
			t.Errorf("%s: got %q, judged %v, want %q and %v", tt.name, growing, judged, tt.grows, tt.judged)
		}
	}
	if growing, unjudged, judged := judgeSoak(soakSpans(nil)); len(growing)+len(unjudged) > 0 || judged {
		t.Errorf("no samples: got %q, %q, judged %v, want nothing", growing, unjudged, judged)
	}
}
