package e2e

import "testing"

// All hubs are killed at once under load, and start again. What they had acknowledged is there, and
// each ends what its life before had left.
func TestAllHubsAreRestartedUnderLoad(t *testing.T) {
	t.Parallel()
	hubs := startCluster(t, 3)
	load := startLoad(hubs)
	t.Cleanup(func() { load.stop() })
	hubs.untilAgents(t)
	load.untilTold(t, 20)
	for _, h := range hubs {
		h.kill()
	}
	hubs.start()
	hubs.untilAgents(t)
	load.untilTold(t, 20)
	load.settle(t)
}
