package cluster_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core/cluster"
	"github.com/dragoman-hub/dragoman/core/journal"
)

func TestALifeIsTakenOverAfterItsAgentsAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		defer r.end()
		var mu sync.Mutex
		lost := map[string]bool{} // the hubs whose engine has lost the agents of c
		r.change = func(s *cluster.Settings) {
			self, gone, takeOver := s.Life.Hub, s.Callbacks.HubGone, s.Callbacks.TakeOver
			s.Callbacks.HubGone = func(of journal.Life) {
				time.Sleep(3 * time.Second) // longer than a turn
				gone(of)
				mu.Lock()
				lost[self] = true
				mu.Unlock()
			}
			s.Callbacks.TakeOver = func(ctx context.Context, of journal.Life) error {
				mu.Lock()
				defer mu.Unlock()
				if !lost[self] {
					t.Errorf("hub %s takes %s over before its engine was told that the hub is gone", self, of)
				}
				return takeOver(ctx, of)
			}
		}
		for _, name := range []string{"a", "b", "c"} {
			r.start(name)
		}
		a := r.hubs["a"]
		r.until("the cluster is formed", a.c.HasQuorum)
		r.untilAgreed()
		r.hubs["c"].kill()
		r.until("c was taken over", func() bool { return strings.Contains(strings.Join(a.events(), "\n"), "c/1 taken over by") })
	})
}
