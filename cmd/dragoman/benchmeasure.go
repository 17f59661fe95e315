package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
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
}

// comparison is the hub beside the relay. The ratios are medians over the rounds
// of the ratio of each round.
type comparison struct {
	AtOnce int    `json:"at_once"`
	Chunks int    `json:"chunks"`
	Hub    series `json:"hub"`
	Relay  series `json:"relay"`
	// Rates are chunks a second, the median over the rounds.
	HubRate   float64 `json:"hub_rate"`
	RelayRate float64 `json:"relay_rate"`
	// P50Ratio is the hub's median time over the relay's, RateRatio its rate over
	// the relay's.
	P50Ratio  float64 `json:"p50_ratio"`
	RateRatio float64 `json:"rate_ratio"`

	p50s, rates, hubRates, relayRates []float64
}

func (c *comparison) add(hub, relay turn) {
	c.Hub.values = append(c.Hub.values, hub.took.values...)
	c.Relay.values = append(c.Relay.values, relay.took.values...)
	c.p50s = append(c.p50s, float64(hub.took.at(.5))/float64(max(1, relay.took.at(.5))))
	c.rates = append(c.rates, hub.rate/max(1, relay.rate))
	c.hubRates, c.relayRates = append(c.hubRates, hub.rate), append(c.relayRates, relay.rate)
}

func (c *comparison) finish() {
	c.Hub.sort()
	c.Relay.sort()
	c.P50Ratio, c.RateRatio = median(c.p50s), median(c.rates)
	c.HubRate, c.RelayRate = median(c.hubRates), median(c.relayRates)
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

func (r benchResult) print(out io.Writer) error {
	fmt.Fprintf(out, "dragoman %s, %s, %d CPUs. A pi client over WebSocket asks a Coven agent over gRPC.\n\n", r.Version, r.Go, r.CPUs)
	t := newTable(out, "WORK", "", "P50", "P90", "P99", "CHUNKS/S", "HUB : RELAY")
	for _, m := range []struct {
		name string
		c    comparison
	}{
		{"1 chunk, one at a time", r.Single}, {fmt.Sprintf("1 chunk, %d at a time", r.Parallel.AtOnce), r.Parallel},
		{fmt.Sprintf("%d chunks, %d at a time", r.Burst.Chunks, r.Burst.AtOnce), r.Burst},
	} {
		row := func(name, who string, s series, rate float64, ratio string) {
			t.row(name, who, round(s.at(.5)), round(s.at(.9)), round(s.at(.99)), fmt.Sprintf("%.0f", rate), ratio)
		}
		row(m.name, "hub", m.c.Hub, m.c.HubRate, fmt.Sprintf("p50 %.2f, rate %.2f", m.c.P50Ratio, m.c.RateRatio))
		row("", "relay", m.c.Relay, m.c.RelayRate, "")
	}
	if err := t.flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nbytes a pi client gets for a byte of text, in bursts: %.2f\nstart to ready: p50 %s, max %s\n", r.WireMultiple, round(r.Start.at(.5)), round(r.Start.at(1)))
	for _, d := range slices.Sorted(maps.Keys(r.Idle)) {
		fmt.Fprintf(out, "an idle %s agent: %.1f KiB resident\n", d, float64(r.Idle[d])/1024)
	}
	return nil
}

func round(d time.Duration) string {
	return d.Round(cmp.Or(time.Duration(0), max(time.Microsecond, d/1000))).String()
}

// awaitReady waits until a child has written its ready file.
func awaitReady(ctx context.Context, path string) (a Addresses, err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
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
func resident(pid int) (int64, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("weighing agents needs /proc: %w", err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if kib, ok := strings.CutPrefix(s.Text(), "VmRSS:"); ok {
			var n int64
			_, err := fmt.Sscanf(kib, "%d kB", &n)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("process %d does not say how much memory it has", pid)
}
