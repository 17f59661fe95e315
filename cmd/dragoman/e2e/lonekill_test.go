package e2e

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core/coretest/tier"
)

// A hub alone is killed and started again while agents and clients of every dialect work. It tells no end before that
// is recorded, so each task has one end afterwards: the one that a client was told.
func TestALoneHubIsKilledUnderLoad(t *testing.T) {
	tier.Full(t, "it kills a hub many times")
	t.Parallel()
	hubs := newHubs(t, 1)
	hub := hubs[0]
	hub.args = append(hub.args, "--config", hub.config("journal: {lag: 0s}\n"))
	hub.start()
	hub.untilReady()
	load := startLoad(hubs)
	t.Cleanup(func() { load.stop() })
	var back []time.Duration
	for range *kills {
		load.untilTold(t, 5+rand.IntN(10)) // where in its work the hub is hit
		hub.kill()
		began := time.Now()
		hub.start()
		hub.untilReady()
		back = append(back, time.Since(began))
	}
	load.untilDialects(t, 8)
	load.settle(t)
	t.Logf("%d kills; ready again: p50 %v, p99 %v", len(back), percentile(back, 0.5).Round(time.Millisecond), percentile(back, 0.99).Round(time.Millisecond))
}
