package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// printTable prints a table of the compared sides, and the figures below it.
func printTable(out io.Writer, r Result) error {
	fmt.Fprintf(out, "%s, %s, %d CPUs\n\n", r.Version, r.Go, r.CPUs)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	compared := false
	for _, row := range r.Rows {
		if row.Comparison == nil {
			continue
		}
		if !compared {
			cells(t, "ROW", "SIDE", "P50", "P90", "P99", "P99.9", "CHUNKS/S", "BYTES/ANSWER", "P50 RATIO", "P99 RATIO", "P99.9 RATIO", "RATE RATIO")
		}
		compared = true
		name := row.Name
		for i, s := range row.Sides {
			bytes, p50, p99, p999, rate := "-", "-", "-", "-", "-"
			if s.Wire > 0 {
				bytes = fmt.Sprintf("%.0f", s.Wire)
			}
			if i > 0 {
				p50, p99, p999, rate = ratio(s.P50Ratio), ratio(s.P99Ratio), ratio(s.P999Ratio), ratio(s.RateRatio)
			}
			cells(t, name, s.Name, round(s.Took.At(.5)), round(s.Took.At(.9)), round(s.Took.At(.99)), round(s.Took.At(.999)),
				fmt.Sprintf("%.0f", s.Rate), bytes, p50, p99, p999, rate)
			name = ""
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if compared {
		fmt.Fprint(out, "\nA ratio is that of the first side of the row to this one: the median of the rounds.\n\n")
	}
	for _, row := range r.Rows {
		for _, f := range row.Figures {
			fmt.Fprintf(out, "%s, %s: %.4g %s\n", row.Name, f.Name, f.Value, f.Unit)
		}
	}
	return nil
}

func cells(t *tabwriter.Writer, all ...string) { fmt.Fprintln(t, strings.Join(all, "\t")) }

func ratio(r float64) string { return fmt.Sprintf("%.2f", r) }

func round(d time.Duration) string { return d.Round(max(time.Microsecond, d/1000)).String() }
