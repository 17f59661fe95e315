package e2e

import (
	"testing"

	"github.com/dragoman-hub/dragoman/core/coretest/tier"
)

// All hubs are killed at once under load, and start again. What they had acknowledged is there, and
// each ends what its life before had left.
func TestAllHubsAreRestartedUnderLoad(t *testing.T) {
	tier.Full(t, "it runs three hubs")
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
