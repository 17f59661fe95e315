package main

import (
	"strings"
	"testing"
)

func TestEachRatioOfTheBenchIsUnderItsHeading(t *testing.T) {
	for name, wire := range map[string]float64{"bytes over a WebSocket": 117, "none": 0} {
		var out strings.Builder
		err := printTable(&out, Result{Rows: []RowResult{{Name: "row", Comparison: &Comparison{Sides: []SideResult{
			{Name: "hub", Wire: wire}, {Name: "relay", Wire: wire, P50Ratio: 2.05, P99Ratio: 1.84, P999Ratio: 3.12, RateRatio: .51},
		}}}}})
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(out.String(), "\n")[2:5]
		heads, relay := lines[0], lines[2]
		for head, want := range map[string]string{"P50 RATIO": "2.05", "P99 RATIO": "1.84", "P99.9 RATIO": "3.12", "RATE RATIO": "0.51"} {
			if at := strings.Index(heads, head); at < 0 || len(relay) <= at || !strings.HasPrefix(relay[at:], want) {
				t.Errorf("%s: got\n%s\nwant %s under %s", name, strings.Join(lines, "\n"), want, head)
			}
		}
		for _, line := range lines {
			if strings.TrimRight(line, " ") != line {
				t.Errorf("got %q, want no blanks at its end", line)
			}
		}
	}
}
