package e2e

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
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
	// By themselves servers miss a leader after 4 seconds at the earliest. On a busy machine a try may
	// take longer, but not most of them.
	const tries, most = 5, 4 * time.Second
	var took []time.Duration
	for range tries {
		took = append(took, answersWhile(t, all[2], all[:2], asked))
	}
	slices.Sort(took)
	if median := took[tries/2]; median >= most {
		t.Errorf("while %s stands still: got answers after %s, which is %s in the median, want less than %s", all[2].name, took, median, most)
	}
}

// Up to 2.5 s in which a hub stands still cost nothing but time: its life goes on, and so do the others.
func TestAHubThatStandsStillForAMomentIsNotTakenOver(t *testing.T) {
	tier.Full(t, "a hub stands still for seconds")
	all := startCluster(t, 3)
	var before []cluster.Hub
	all[0].untilHubs("the hubs are known", func(hubs []cluster.Hub) bool { before = hubs; return len(hubs) == 3 })
	for i := range 6 {
		still := all[i%3]
		still.stop()
		time.Sleep(2500 * time.Millisecond)
		still.cont()
		all.untilAllUp()
	}
	all[0].untilHubs("all hubs are up in the lives that they had", func(hubs []cluster.Hub) bool {
		return slices.EqualFunc(before, hubs, func(a, b cluster.Hub) bool { return a.Life() == b.Life() && b.State == cluster.Up })
	})
}

// answersWhile returns how long it takes until hubs have asked agents of their own while another hub
// stands still. That goes on afterwards.
func answersWhile(t *testing.T, still *clusterHub, others hubCluster, asked func(at, of *clusterHub) error) (slowest time.Duration) {
	t.Helper()
	still.stop()
	began := time.Now()
	took := make([]time.Duration, len(others))
	var asking sync.WaitGroup
	for i, h := range others {
		asking.Go(func() {
			if err := asked(h, h); err != nil {
				t.Errorf("while %s stands still: %v", still.name, err)
			}
			took[i] = time.Since(began)
		})
	}
	asking.Wait()
	still.cont()
	append(slices.Clone(others), still).untilAllUp()
	t.Logf("%s stood still: answers after %s", still.name, took)
	return slices.Max(took)
}
