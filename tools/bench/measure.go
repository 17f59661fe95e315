package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// series are measured times. Sort them before reading percentiles.
type series struct{ values []time.Duration }

func (s *series) add(d time.Duration) { s.values = append(s.values, d) }
func (s *series) sort()               { slices.Sort(s.values) }

// At returns a percentile.
func (s *series) At(share float64) time.Duration {
	if len(s.values) == 0 {
		return 0
	}
	return s.values[min(len(s.values)-1, int(share*float64(len(s.values))))]
}

// MarshalJSON writes the percentiles.
func (s series) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{
		"n": len(s.values), "p50_ns": s.At(.5), "p90_ns": s.At(.9), "p99_ns": s.At(.99), "p999_ns": s.At(.999), "max_ns": s.At(1),
	})
}

// turn is the result of one turn of a side.
type turn struct {
	took series
	rate float64 // chunks per second
	wire float64 // bytes per answer over a WebSocket
}

// Comparison is the result of sides that took turns.
type Comparison struct {
	AtOnce int          `json:"at_once"`
	Chunks int          `json:"chunks"`
	Sides  []SideResult `json:"sides"`
}

// SideResult is the result of one side over all rounds. The ratios are those of the first
// side to this one: the median over the rounds.
type SideResult struct {
	Name string `json:"name"`
	Took series `json:"took"`
	// Rate is chunks per second, and Wire bytes received per answer: medians over the
	// rounds.
	Rate float64 `json:"rate"`
	Wire float64 `json:"wire_bytes,omitempty"`
	// P50Ratio is the first side's median time over this one's, P99Ratio and P999Ratio those
	// of their percentiles 99 and 99.9, RateRatio its rate over this one's.
	P50Ratio  float64 `json:"p50_ratio,omitempty"`
	P99Ratio  float64 `json:"p99_ratio,omitempty"`
	P999Ratio float64 `json:"p999_ratio,omitempty"`
	RateRatio float64 `json:"rate_ratio,omitempty"`

	rates, wires, p50s, p99s, p999s, ratios []float64
}

// add adds a round: a turn of each side.
func (c *Comparison) add(turns []turn) {
	first := turns[0]
	for i, t := range turns {
		s := &c.Sides[i]
		s.Took.values = append(s.Took.values, t.took.values...)
		s.rates, s.wires = append(s.rates, t.rate), append(s.wires, t.wire)
		if i == 0 {
			continue
		}
		s.p50s = append(s.p50s, float64(first.took.At(.5))/float64(max(1, t.took.At(.5))))
		s.p99s = append(s.p99s, float64(first.took.At(.99))/float64(max(1, t.took.At(.99))))
		s.p999s = append(s.p999s, float64(first.took.At(.999))/float64(max(1, t.took.At(.999))))
		s.ratios = append(s.ratios, first.rate/max(1, t.rate))
	}
}

func (c *Comparison) finish() {
	for i := range c.Sides {
		s := &c.Sides[i]
		s.Took.sort()
		s.Rate, s.Wire = median(s.rates), median(s.wires)
		s.P50Ratio, s.P99Ratio, s.P999Ratio, s.RateRatio = median(s.p50s), median(s.p99s), median(s.p999s), median(s.ratios)
	}
}

// Result has the results of all rows.
type Result struct {
	Version string      `json:"version"`
	Go      string      `json:"go"`
	CPUs    int         `json:"cpus"`
	Rows    []RowResult `json:"rows"`
}

// RowResult is the result of a row: sides that took turns, figures, or both.
type RowResult struct {
	Name  string `json:"name"`
	About string `json:"about"`
	*Comparison
	Figures []figure `json:"figures,omitempty"`
}

// figure is one number.
type figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

func (r *RowResult) figure(name string, value float64, unit string) {
	r.Figures = append(r.Figures, figure{name, value, unit})
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// resident returns the resident memory of a process in bytes.
func resident(pid int) (int64, error) { return memoryOf(pid, "VmRSS:") }

// memoryOf returns a line of /proc/PID/status in bytes.
func memoryOf(pid int, line string) (int64, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("measuring memory needs /proc: %w", err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if kib, ok := strings.CutPrefix(s.Text(), line); ok {
			var n int64
			_, err := fmt.Sscanf(kib, "%d kB", &n)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("process %d reports no memory", pid)
}
