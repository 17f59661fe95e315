package peer_test

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// simStore is a journal that all hubs of a schedule share. It is slow, loses writes, reads and
// acknowledgements, and waits for hubs that are cut off. It checks that no life writes after
// another one has taken its place.
type simStore struct {
	*coretest.SharedMemory
	s       *sim
	checker *coretest.MemoryLife // reads without trouble

	mu     sync.Mutex
	killed map[journal.Life]bool
	epochs map[string]uint64    // the latest of each hub
	since  map[string]time.Time // when it began
	taken  map[string]taken     // who took the latest over
	// refused and unheard are how many of a thousand writes and reads are refused, and how many writes are
	// stored but not acknowledged.
	refused, unheard int
	slow             time.Duration
	broken           []string
}

type taken struct {
	by journal.Life
	at time.Time
}

func newSimStore(s *sim) *simStore {
	st := &simStore{
		SharedMemory: coretest.NewSharedMemory(journal.Retention{Age: 100 * 365 * 24 * time.Hour}), s: s,
		killed: map[journal.Life]bool{}, epochs: map[string]uint64{}, since: map[string]time.Time{}, taken: map[string]taken{},
	}
	st.Before, st.After = st.before, st.after
	st.checker = st.Open("checker")
	st.Reading = func(by journal.Life) error {
		if by == st.checker.Life() {
			return nil
		}
		return st.before(coretest.Write{By: by, Hub: by.Hub})
	}
	return st
}

func (st *simStore) open(hub string) *coretest.MemoryLife {
	l := st.Open(hub)
	st.mu.Lock()
	defer st.mu.Unlock()
	st.epochs[hub], st.since[hub] = l.Life().Epoch, time.Now()
	delete(st.taken, hub)
	return l
}

func (st *simStore) kill(l journal.Life) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.killed[l] = true
}

// weather sets what happens to writes and reads from now on.
func (st *simStore) weather(refused, unheard int, slow time.Duration) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.refused, st.unheard, st.slow = refused, unheard, slow
}

var (
	errKilled  = fmt.Errorf("its process is gone: %w", journal.ErrFenced)
	errRefused = errors.New("the store did not answer in time: it has done nothing")
	errUnheard = errors.New("the store did not answer in time: it has stored it")
)

// draw draws a number below n. It follows from the writer and the instant.
func (st *simStore) draw(w coretest.Write, what uint64, n int) int {
	x := st.s.seed ^ uint64(time.Now().UnixNano()) ^ what<<56
	for _, part := range [...]string{w.By.Hub, w.Hub} {
		for i := range len(part) {
			x = (x ^ uint64(part[i])) * 1099511628211
		}
	}
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return int((x ^ x>>31) % uint64(n))
}

func (st *simStore) before(w coretest.Write) error {
	const patience = 3 * time.Second
	for began := time.Now(); !st.s.net.Reaches(w.By.Hub); {
		time.Sleep(time.Duration(20_000_000 + st.draw(w, 1, 1_000_000)))
		switch {
		case st.isKilled(w.By):
			return errKilled
		case time.Since(began) > patience:
			return errRefused
		}
	}
	st.mu.Lock()
	refused, slow := st.refused, st.slow
	st.mu.Unlock()
	time.Sleep(time.Duration(200_000+st.draw(w, 2, 1_000_000)) + time.Duration(st.draw(w, 3, int(slow)+1)))
	switch {
	case st.isKilled(w.By):
		return errKilled
	case st.draw(w, 4, 1000) < refused:
		return errRefused
	}
	return nil
}

func (st *simStore) after(w coretest.Write) error {
	st.check(w)
	st.mu.Lock()
	unheard := st.unheard
	st.mu.Unlock()
	time.Sleep(time.Duration(100_000 + st.draw(w, 5, 300_000)))
	switch {
	case st.isKilled(w.By):
		return errKilled
	case st.draw(w, 6, 1000) < unheard:
		return errUnheard
	}
	return nil
}

func (st *simStore) isKilled(l journal.Life) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.killed[l]
}

// check checks a write that was stored: its writer still had to own the part.
func (st *simStore) check(w coretest.Write) {
	st.mu.Lock()
	defer st.mu.Unlock()
	now, t := time.Now(), st.taken[w.Hub]
	breaks := func(format string, args ...any) {
		st.broken = append(st.broken, fmt.Sprintf("fence: "+format, args...))
	}
	own := w.By.Hub == w.Hub
	switch {
	case len(w.Records) == 0 && own && w.By.Epoch == st.epochs[w.Hub]: // nothing to recover
	case len(w.Records) == 0:
		st.taken[w.Hub] = taken{w.By, now}
	case own && w.By.Epoch < st.epochs[w.Hub] && st.since[w.Hub].Before(now):
		breaks("%s has written after its hub began life %d", w.By, st.epochs[w.Hub])
	case own && t.by.Hub != "" && t.at.Before(now):
		breaks("%s has written after %s took it over", w.By, t.by)
	case !own && t.by != w.By && t.at.Before(now):
		breaks("%s has written to the part of %s, which is that of %q", w.By, w.Hub, t.by)
	}
}
