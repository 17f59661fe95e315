package cluster_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
)

var (
	schedules = flag.Int("schedules", 30, "how many random schedules of a cluster to run")
	firstSeed = flag.Uint64("seed", 1, "the seed of the first schedule")
)

// TestAfterAnyScheduleTheRosterIsTheSameAndIDsWereUnique runs schedules of joins, leaves, kills,
// restarts, pauses, partitions and losses. All the while no two hubs that have a quorum have one
// agent; after it, in peace, all hubs know the same.
func TestAfterAnyScheduleTheRosterIsTheSameAndIDsWereUnique(t *testing.T) {
	seeds := []uint64{127} // an id that was given to another hub was written again, for a connection that came meanwhile
	for n := range uint64(tier.Pick(3, *schedules)) {
		seeds = append(seeds, *firstSeed+n)
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newSchedule(t, seed).run(60) })
		})
		if t.Failed() {
			return
		}
	}
}

type schedule struct {
	*rig
	draw   *rand.Rand
	names  []string
	paused map[string]bool
	peace  bool
	joins  sync.WaitGroup
	steps  []string
}

func newSchedule(t *testing.T, seed uint64) *schedule {
	s := &schedule{rig: newRig(t, seed), draw: rand.New(rand.NewPCG(seed, 17)), paused: map[string]bool{}}
	s.change = func(of *cluster.Settings) { of.Known = s.store.known() }
	s.names = []string{"a", "b", "c", "d", "e"}[:3+s.draw.IntN(3)]
	for _, name := range s.names {
		s.start(name)
	}
	return s
}

func (s *schedule) run(steps int) {
	defer s.joins.Wait()
	defer s.end()
	for range steps {
		s.step()
		s.rest(time.Duration(s.draw.IntN(1500)) * time.Millisecond)
	}
	s.note("peace")
	s.peace = true
	s.net.Heal()
	s.net.Calm()
	for name := range s.paused {
		s.net.Resume(name)
	}
	clear(s.paused)
	s.rest(3 * time.Second)
	for _, name := range s.names {
		if s.hubs[name] == nil {
			s.start(name)
		}
	}
	s.joins.Wait()
	s.rest(3 * time.Second)
	defer func() {
		if s.t.Failed() {
			s.t.Logf("the schedule:\n%s\n%s\n%q", fmt.Sprint(s.steps), s.disagreement(), s.claims.Holders())
		}
	}()
	s.until("all hubs know the same", func() bool { s.restart(); return s.disagreement() == "" })
	s.until("each agent has its claim", s.claimed)
}

func (s *schedule) note(format string, args ...any) {
	s.steps = append(s.steps, fmt.Sprintf(format, args...)+";")
}

func (s *schedule) step() {
	name := s.names[s.draw.IntN(len(s.names))]
	h := s.hubs[name]
	id := core.AgentID(fmt.Sprintf("agent-%d", s.draw.IntN(5)))
	n := s.draw.IntN(100)
	switch {
	case n < 45 && h != nil:
		p := core.Principal{ID: []string{"ann", "ben"}[s.draw.IntN(2)], Authenticated: s.draw.IntN(4) > 0}
		s.note("%s joins %s as %s/%t", id, name, p.ID, p.Authenticated)
		s.joins.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
			defer cancel()
			_ = h.join(ctx, id, p)
		})
	case n < 60 && h != nil:
		s.note("%s leaves %s", id, name)
		h.part(id)
	case n < 64 && h != nil:
		s.note("%s is killed", name)
		h.kill()
	case n < 67 && h != nil:
		s.note("%s leaves", name)
		h.leave()
	case n < 75 && h == nil:
		s.note("%s starts", name)
		s.start(name)
	case n < 80:
		s.note("%s is isolated", name)
		s.net.Isolate(name)
	case n < 83:
		other := s.names[s.draw.IntN(len(s.names))]
		s.note("%s does not reach %s", name, other)
		s.net.CutOneWay(name, other)
	case n < 89:
		s.note("cuts are healed")
		s.net.Heal()
	case n < 92:
		s.note("%s is paused", name)
		s.net.Pause(name)
		s.paused[name] = true
	case n < 95:
		s.note("%s goes on", name)
		s.net.Resume(name)
		delete(s.paused, name)
	case n < 98:
		s.note("the weather is bad")
		s.net.SetWeather(coretest.Weather{Least: time.Millisecond, Most: 60 * time.Millisecond, Lost: s.draw.IntN(200), Twice: s.draw.IntN(100)})
	default:
		s.note("the weather is good")
		s.net.Calm()
	}
	for id, load := range map[core.AgentID]cluster.Load{id: {Active: s.draw.IntN(5)}} {
		if h != nil {
			h.setLoad(id, load)
		}
	}
}

func (h *testHub) setLoad(id core.AgentID, l cluster.Load) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e, has := h.own[id]; has {
		e.Load = l
		h.own[id] = e
		h.c.SetLoad(id, l)
	}
}

// rest lets time pass, and looks at the ids all the while.
func (s *schedule) rest(d time.Duration) {
	for ; d > 0; d -= 7 * time.Millisecond {
		time.Sleep(7 * time.Millisecond)
		synctest.Wait()
		s.restart()
		for i := range 5 {
			id := core.AgentID(fmt.Sprintf("agent-%d", i))
			var has []string
			for _, name := range s.at(id) {
				if s.hubs[name].c.HasQuorum() {
					has = append(has, name)
				}
			}
			if len(has) > 1 {
				slices.Sort(has)
				s.t.Fatalf("hubs with a quorum that have %s: got %q, want one; the claim is %s\n%s\n%q\n%q", id, has, s.claims.Holders()["at."+string(id)], fmt.Sprint(s.steps), s.hubs[has[0]].events(), s.hubs[has[1]].events())
			}
		}
	}
}

// restart gives hubs that were deposed a new life.
func (s *schedule) restart() {
	for _, name := range s.names {
		h := s.hubs[name]
		if h == nil {
			continue
		}
		h.mu.Lock()
		deposed := h.deposed.Hub != "" || s.peace && s.store.taker(h.life).Hub != "" // which its journal notices
		h.mu.Unlock()
		if deposed && !s.paused[name] {
			s.steps = append(s.steps, name+" begins a new life;")
			h.leave()
			s.start(name)
		}
	}
}

// claimed reports whether the claim of each agent is that of its hub, or names it as a former one.
func (s *schedule) claimed() bool {
	holders := s.claims.Holders()
	for _, h := range s.hubs {
		h.mu.Lock()
		for id, e := range h.own {
			if !cluster.Claimed(holders["at."+string(id)], h.life, e.Connection) {
				h.mu.Unlock()
				return false
			}
		}
		h.mu.Unlock()
	}
	return true
}
