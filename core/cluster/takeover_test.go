package cluster_test

import (
	"context"
	"errors"
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
				knows := lost[self]
				mu.Unlock()
				if !knows {
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

// The store has it that a has taken c over, which a does not know yet: it could not read what c has left.
// It hears from b that it has, and finishes all the same.
func TestAnHeirThatHearsOfItselfFinishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		defer r.end()
		var mu sync.Mutex
		tries, finished := 0, false
		heir := journal.Life{}
		r.change = func(s *cluster.Settings) {
			self, life := s.Life.Hub, s.Life
			s.Callbacks.TakeOver = func(_ context.Context, of journal.Life) error {
				mu.Lock()
				defer mu.Unlock()
				switch {
				case self == "b" && heir.Hub == "": // it is a's turn
					return errors.New("the store has no leader")
				case self == "b":
					return &journal.TakenError{Of: of, By: heir}
				}
				heir = life
				if tries++; tries < 6 { // longer than b needs to ask, and to say so
					return errors.New("the store has no leader")
				}
				finished = true
				return nil
			}
		}
		for _, name := range []string{"a", "b", "c"} {
			r.start(name)
		}
		a := r.hubs["a"]
		r.until("the cluster is formed", a.c.HasQuorum)
		r.untilAgreed()
		r.hubs["c"].kill()
		r.until("a has finished", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return finished
		})
		time.Sleep(10 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if tries != 6 {
			t.Errorf("got %d tries, want none after the one that finished, the sixth", tries)
		}
	})
}

// A hub that drains ends what another one could go on with.
func TestAHubThatDrainsTakesOverOnlyWhatNobodyElseDoes(t *testing.T) {
	for drains, takes := range map[string]string{"a": "b", "b": "a"} {
		synctest.Test(t, func(t *testing.T) {
			r := rigOf(t, "a", "b", "c")
			defer r.end()
			r.hubs[drains].c.SetDraining(true)
			r.untilAgreed()
			r.hubs["c"].kill()
			for _, name := range []string{"a", "b"} {
				r.until(name+" knows who has taken c over", func() bool {
					return strings.Contains(strings.Join(r.hubs[name].events(), "\n"), "c/1 taken over by "+takes)
				})
			}
		})
	}
}
