package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// series is times that were measured. Sort it before reading it.
type series struct{ values []time.Duration }

func (s *series) add(d time.Duration) { s.values = append(s.values, d) }
func (s *series) sort()               { slices.Sort(s.values) }

// at returns the value below which a share of all lie.
func (s *series) at(share float64) time.Duration {
	if len(s.values) == 0 {
		return 0
	}
	return s.values[min(len(s.values)-1, int(share*float64(len(s.values))))]
}

// MarshalJSON writes the percentiles.
func (s series) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{
		"n": len(s.values), "p50_ns": s.at(.5), "p90_ns": s.at(.9), "p99_ns": s.at(.99), "max_ns": s.at(1),
	})
}

// turn is what one side did in one span of time.
type turn struct {
	took series
	rate float64 // chunks a second
	wire float64 // bytes an answer, over a WebSocket
}

// comparison is what the sides did that took turns.
type comparison struct {
	AtOnce int          `json:"at_once"`
	Chunks int          `json:"chunks"`
	Sides  []sideResult `json:"sides"`
}

// sideResult is what one side did in all rounds. The ratios are those of the first
// side to this one: medians over the rounds of the ratio of each round.
type sideResult struct {
	Name string `json:"name"`
	Took series `json:"took"`
	// Rate is chunks a second, and Wire how many bytes came for an answer: medians
	// over the rounds.
	Rate float64 `json:"rate"`
	Wire float64 `json:"wire_bytes,omitempty"`
	// P50Ratio is the first side's median time over this one's, P99Ratio that of their
	// 99th percentiles, RateRatio its rate over this one's.
	P50Ratio  float64 `json:"p50_ratio,omitempty"`
	P99Ratio  float64 `json:"p99_ratio,omitempty"`
	RateRatio float64 `json:"rate_ratio,omitempty"`

	rates, wires, p50s, p99s, ratios []float64
}

// add takes in a round: a turn of each side.
func (c *comparison) add(turns []turn) {
	first := turns[0]
	for i, t := range turns {
		s := &c.Sides[i]
		s.Took.values = append(s.Took.values, t.took.values...)
		s.rates, s.wires = append(s.rates, t.rate), append(s.wires, t.wire)
		if i == 0 {
			continue
		}
		s.p50s = append(s.p50s, float64(first.took.at(.5))/float64(max(1, t.took.at(.5))))
		s.p99s = append(s.p99s, float64(first.took.at(.99))/float64(max(1, t.took.at(.99))))
		s.ratios = append(s.ratios, first.rate/max(1, t.rate))
	}
}

func (c *comparison) finish() {
	for i := range c.Sides {
		s := &c.Sides[i]
		s.Took.sort()
		s.Rate, s.Wire = median(s.rates), median(s.wires)
		s.P50Ratio, s.P99Ratio, s.RateRatio = median(s.p50s), median(s.p99s), median(s.ratios)
	}
}

// benchResult is everything that was measured.
type benchResult struct {
	Version string      `json:"version"`
	Go      string      `json:"go"`
	CPUs    int         `json:"cpus"`
	Rows    []rowResult `json:"rows"`
}

// rowResult is what came of a row: sides that took turns, figures, or both.
type rowResult struct {
	Name  string `json:"name"`
	About string `json:"about"`
	*comparison
	Figures []figure `json:"figures,omitempty"`
}

// figure is one number.
type figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

func (r *rowResult) figure(name string, value float64, unit string) {
	r.Figures = append(r.Figures, figure{name, value, unit})
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

func (r benchResult) print(out io.Writer) error {
	fmt.Fprintf(out, "dragoman %s, %s, %d CPUs\n\n", r.Version, r.Go, r.CPUs)
	t := newTable(out, "ROW", "SIDE", "P50", "P90", "P99", "CHUNKS/S", "BYTES/ANSWER", "THE FIRST TO IT")
	compared := false
	for _, row := range r.Rows {
		if row.comparison == nil {
			continue
		}
		name := row.Name
		compared = true
		for i, s := range row.Sides {
			ratios, bytes := "", ""
			if i > 0 {
				ratios = fmt.Sprintf("p50 %.2f, p99 %.2f, rate %.2f", s.P50Ratio, s.P99Ratio, s.RateRatio)
			}
			if s.Wire > 0 {
				bytes = fmt.Sprintf("%.0f", s.Wire)
			}
			t.row(name, s.Name, round(s.Took.at(.5)), round(s.Took.at(.9)), round(s.Took.at(.99)), fmt.Sprintf("%.0f", s.Rate), bytes, ratios)
			name = ""
		}
	}
	if compared {
		if err := t.flush(); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	for _, row := range r.Rows {
		for _, f := range row.Figures {
			fmt.Fprintf(out, "%s, %s: %.4g %s\n", row.Name, f.Name, f.Value, f.Unit)
		}
	}
	return nil
}

func round(d time.Duration) string {
	return d.Round(cmp.Or(time.Duration(0), max(time.Microsecond, d/1000))).String()
}

// awaitReady waits until a child has written its ready file.
func awaitReady(ctx context.Context, path string) (a Addresses, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // a crowd takes a while
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		b, err := os.ReadFile(path)
		if err == nil {
			return a, json.Unmarshal(b, &a)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return a, context.Cause(ctx)
		}
	}
}

// resident returns how much memory a process keeps resident, in bytes.
func resident(pid int) (int64, error) { return memoryOf(pid, "VmRSS:") }

// memoryOf returns a line of what Linux says of the memory of a process, in bytes.
func memoryOf(pid int, line string) (int64, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("weighing agents needs /proc: %w", err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if kib, ok := strings.CutPrefix(s.Text(), line); ok {
			var n int64
			_, err := fmt.Sscanf(kib, "%d kB", &n)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("process %d does not say how much memory it has", pid)
}
