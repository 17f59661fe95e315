package e2e

import (
	"flag"
	"os/exec"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core/cluster"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
)

var busyFor = flag.Duration("cluster.busy", 20*time.Second, "how long hubs work beside busy neighbours")

// Hubs that share their processors with others for a long time are slow, and none of them is gone.
func TestHubsBesideBusyNeighboursAreNotTakenOver(t *testing.T) {
	tier.Full(t, "it keeps all processors busy")
	hubs := startCluster(t, 3)
	load := startLoad(hubs)
	t.Cleanup(func() { load.stop() })
	hubs.untilAgents(t)
	for range 8 {
		neighbour := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
		if err := neighbour.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = neighbour.Wait() }) // it was killed
	}
	for end := time.Now().Add(*busyFor); time.Now().Before(end) && !t.Failed(); {
		load.untilTold(t, 10)
		for _, h := range hubs {
			h.untilHubs(h.name+" sees three hubs", func(all []cluster.Hub) bool {
				for _, o := range all {
					if o.Epoch != 1 || o.State == cluster.Gone {
						t.Errorf("hub %s sees %s in its life %d as %s, want its first life", h.name, o.Name, o.Epoch, o.State)
					}
				}
				return len(all) == len(hubs)
			})
		}
	}
	t.Logf("clients were told %d ends", len(load.stop()))
}
