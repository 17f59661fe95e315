package e2e

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core"
)

// Each of three hubs leads the stream of another one. While one stands still, that other one stores
// nothing, until the servers have elected another leader: soon, not once they have waited for it.
func TestAHubThatStandsStillDelaysNobodyForLong(t *testing.T) {
	all := startCluster(t, 3)
	for _, h := range all {
		joinWorker(t, h, core.AgentID("agent-"+h.name))
	}
	asked := func(at, of *clusterHub) error {
		if code, out, stderr := run(t, "ask", "--hub", at.URL, "agent-"+of.name, "why"); code != command.ExitDone || out != "WHY\n" {
			return fmt.Errorf("asked at %s for an agent of %s: got %d, %q and %q, want its answer", at.name, of.name, code, out, stderr)
		}
		return nil
	}
	for _, at := range all {
		for _, of := range all {
			at.until("the agents answer", func() error { return asked(at, of) })
		}
	}
	const most = 4 * time.Second // the least after which servers miss a leader by themselves, and a moment before the hub is gone
	still := all[2]
	still.stop()
	began := time.Now()
	var asking sync.WaitGroup
	for _, h := range all[:2] {
		asking.Go(func() {
			if err := asked(h, h); err != nil {
				t.Errorf("while %s stands still: %v", still.name, err)
			}
			took := time.Since(began)
			t.Logf("%s stands still: an answer at %s after %s", still.name, h.name, took.Round(time.Millisecond))
			if took > most {
				t.Errorf("%s stands still: got an answer at %s after %s, want it within %s", still.name, h.name, took, most)
			}
		})
	}
	asking.Wait()
	still.cont()
	all.untilAllUp()
}
