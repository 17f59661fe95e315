package e2e

import (
	"fmt"
	"slices"
	"strings"
)

// lastHalf returns the samples of the last half of a slice.
func (s *soakSamples) lastHalf(slice int) (half []soakSample) {
	of := slices.DeleteFunc(slices.Clone(s.all), func(one soakSample) bool { return one.slice != slice })
	if len(of) == 0 {
		return nil
	}
	middle := (of[0].at + of[len(of)-1].at) / 2
	return slices.DeleteFunc(of, func(one soakSample) bool { return one.at < middle })
}

// trend fits a line through a figure of samples, by hours.
func soakTrend(samples []soakSample, figure string) trend {
	var x, y []float64
	for _, one := range samples {
		x, y = append(x, one.at/3600), append(y, one.values[figure])
	}
	return trendOf(x, y)
}

// overall is the last half of all slices, without the first half of each, in which a hub warms up.
func (s *soakSamples) overall() (all []soakSample) {
	for slice := 1; slice <= s.slice; slice++ {
		all = append(all, s.lastHalf(slice)...)
	}
	if len(all) == 0 {
		return nil
	}
	middle := s.all[len(s.all)-1].at / 2
	return slices.DeleteFunc(all, func(one soakSample) bool { return one.at < middle })
}

// table shows the figures of the last halves of all slices.
func (s *soakSamples) table() string {
	var b strings.Builder
	for slice := 1; slice <= s.slice; slice++ {
		tableOf(&b, fmt.Sprintf("slice %d", slice), s.lastHalf(slice))
	}
	if s.slice > 1 {
		tableOf(&b, "all slices", s.overall())
	}
	return b.String()
}

func tableOf(b *strings.Builder, name string, half []soakSample) {
	if len(half) < 3 {
		fmt.Fprintf(b, "%s: %d samples\n", name, len(half))
		return
	}
	fmt.Fprintf(b, "%s, its last half: %d samples in %.1f min\n", name, len(half), (half[len(half)-1].at-half[0].at)/60)
	fmt.Fprintf(b, "%-12s %10s %10s %10s %12s %10s\n", "", "mean", "least", "most", "an hour", "± ")
	for _, f := range soakFigures {
		t := soakTrend(half, f.name)
		least, most := half[0].values[f.name], half[0].values[f.name]
		for _, one := range half {
			least, most = min(least, one.values[f.name]), max(most, one.values[f.name])
		}
		verdict := "flat"
		switch {
		case !f.bounded:
			verdict = ""
		case t.grows(f.slack):
			verdict = "GROWS"
		case !t.flat(f.slack):
			verdict = "falls"
		}
		fmt.Fprintf(b, "%-12s %10.1f %10.1f %10.1f %+12.2f %10.2f %-4s %s\n", f.name, t.mean/f.size, least/f.size, most/f.size, t.slope/f.size, t.err/f.size, f.unit, verdict)
	}
}

// growing names what grows over the last half of the last slice, if it was long enough to say so.
func (s *soakSamples) growing() (all []string) {
	const least = 10. / 60 // of an hour
	half := s.lastHalf(s.slice)
	for _, f := range soakFigures {
		if t := soakTrend(half, f.name); f.bounded && t.length >= least && t.grows(f.slack) {
			all = append(all, fmt.Sprintf("%s grows by %.2f ± %.2f %s an hour", f.name, t.slope/f.size, t.err/f.size, f.unit))
		}
	}
	return all
}
