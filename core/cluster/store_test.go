package cluster_test

import (
	"context"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core/cluster"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// store is the fences of a journal that all hubs of a network run.
type store struct {
	net    *coretest.Network
	mu     sync.Mutex
	epochs map[string]uint64
	by     map[journal.Life]journal.Life
	tries  int
}

// begin begins a life, which takes over the one before.
func (s *store) begin(hub string) journal.Life {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := journal.Life{Hub: hub, Epoch: s.epochs[hub]}
	s.epochs[hub]++
	next := journal.Life{Hub: hub, Epoch: s.epochs[hub]}
	if old.Epoch > 0 {
		s.by[old] = next
	}
	return next
}

// known returns what the journal knows of the hubs.
func (s *store) known() (all []cluster.Hub) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, epoch := range s.epochs {
		h := cluster.Hub{Name: name, Index: int(name[0] - 'a'), Epoch: epoch}
		if by, taken := s.by[h.Life()]; taken {
			h.TakenBy = &by
		}
		all = append(all, h)
	}
	return all
}

// takeOver does what journal.Shared says.
func (s *store) takeOver(ctx context.Context, by, of journal.Life) error {
	for !s.net.Reaches(by.Hub) {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	time.Sleep(2 * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tries++
	if s.by[by] != (journal.Life{}) {
		return journal.ErrFenced
	}
	if had := s.by[of]; had != (journal.Life{}) && s.by[had] == (journal.Life{}) {
		return &journal.TakenError{Of: of, By: had}
	}
	s.by[of] = by
	return nil
}

func (s *store) taker(of journal.Life) journal.Life {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[of]
}
