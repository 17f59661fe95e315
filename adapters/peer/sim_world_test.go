package peer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/peer"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/bus"
)

// sim is one schedule: a cluster of whole hubs, agents and people who use it, and what goes wrong.
// All of it follows from the seed. One goroutine acts, one thing at a time and each at an instant
// of its own, and waits in between until everything else waits too: what the hubs do within one
// instant must not depend on which of their goroutines is first.
type sim struct {
	seed   uint64
	rnd    *rand.Rand
	began  time.Time
	net    *coretest.Network
	claims *coretest.Claims
	keys   *coretest.Keys
	store  *simStore
	hubs   []*simHub
	agents []*simAgent
	people []*person
	tasks  []*simTask
	byID   map[core.TaskID]*simTask
	keyed  []*simKey
	cuts   []*trouble
	due    []*trouble
	lives  []*lifeLog // of all lives of all hubs
	sick   time.Time  // when the hubs were last seen not to be a cluster, at the end

	log    []byte
	broken []string
	count  counts

	running sync.WaitGroup // goroutines that wait for a hub in the name of somebody
	sending atomic.Int64   // those that send a request with a key

	mu    sync.Mutex
	found []found  // tasks that were looked for
	sent  []sent   // requests with keys that were sent
	joins []joined // agents that have joined, or not
}

// counts tell what a schedule had in it.
type counts struct{ Tasks, Done, Failed, Cancelled, Lost, TakenOver, Kills, Lives, Moves, Retried, HandedOn, Sent, Known int }

// simHub is a hub, over its lives.
type simHub struct {
	name   string
	index  int
	paused bool
	// back is when it begins its next life; zero while it runs, or is on its way.
	back time.Time
	now  *life // nil while it does not run
	last *life // the last one; nil before the first
}

// life is one life of a hub.
type life struct {
	*hub.Hub
	at       *simHub
	journal  *coretest.MemoryLife
	part     *peer.Member
	log      *lifeLog
	promises *coretest.Promises
	keys     *hub.Keys
	node     *bus.Node
	stopPart func()

	mu      sync.Mutex
	ready   bool // its journal is read: it may be used
	failed  error
	deposed bool
	stopped bool // nothing of it runs
	rough   bool // it did not end by its own will
}

// is reads a flag of a life.
func (l *life) is(flag *bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return *flag
}

func (l *life) set(flag *bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*flag = true
}

// simBus is a bus on which what is sent to all takes a moment: without it two timers of a hub
// would always fire in one instant, in any order.
type simBus struct{ cluster.Bus }

func (b simBus) Publish(subject string, data []byte) error {
	if subject == "hubs" {
		time.Sleep(3 * time.Microsecond)
	}
	return b.Bus.Publish(subject, data)
}

const simHubs = 3

// simLimits are short, so that a schedule is short.
var simLimits = hub.Limits{
	CancelGrace: time.Second, SlotGrace: time.Second, QuestionTimeout: 2 * time.Second, Deadline: 5 * time.Second,
}

// simulate runs the schedule of a seed, on one processor: then goroutines run in the same order each
// time, but for what the runtime draws.
func simulate(t *testing.T, seed uint64) (s *sim) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	s = &sim{seed: seed, rnd: rand.New(rand.NewPCG(seed, 17)), byID: map[core.TaskID]*simTask{}}
	defer func() {
		if p := recover(); p != nil { // of synctest: a goroutine is left
			s.breaks("goroutines: %v", p)
		}
	}()
	synctest.Test(t, func(*testing.T) { s.run() })
	return s
}

func (s *sim) run() {
	s.began = time.Now()
	s.net = coretest.NewNetwork(s.seed)
	s.claims = coretest.NewClaims(s.net)
	s.keys = coretest.NewKeys(s.claims, 5*time.Minute)
	s.store = newSimStore(s)
	for i := range simHubs {
		s.hubs = append(s.hubs, &simHub{name: string(rune('a' + i)), index: i})
		s.start(s.hubs[i])
		s.moment()
	}
	s.cast()
	for _, h := range s.hubs {
		s.await(10*time.Second, "hub "+h.name+" has a quorum", func() bool { return s.usable(h) && h.now.part.Cluster().HasQuorum() })
	}
	if len(s.broken) == 0 {
		s.play()
		s.mend()
		s.check()
	}
	var closing sync.WaitGroup // the store needs a majority until all have written what they have
	for _, h := range s.hubs {
		if h.now != nil {
			closing.Add(1)
			s.stop(h, &closing)
		}
	}
	s.running.Wait()
	s.checkLives()
}

// moment lets a little time pass, so that nothing else happens in the same instant, and waits until
// everything waits.
func (s *sim) moment() {
	time.Sleep(time.Duration(1 + s.rnd.IntN(20_000)))
	synctest.Wait()
}

// await waits for something that takes a while; that it takes longer than that breaks a promise.
func (s *sim) await(atMost time.Duration, what string, ok func() bool) bool {
	for end := time.Now().Add(atMost); ; {
		s.settle()
		if ok() {
			return true
		}
		if time.Now().After(end) {
			s.breaks("after %s: want that %s", atMost, what)
			return false
		}
		time.Sleep(20 * time.Millisecond)
		s.moment()
	}
}

// start begins a life of a hub.
func (s *sim) start(h *simHub) {
	j := s.store.open(h.name)
	b := simBus{s.net.Bus(h.name)}
	l := &life{at: h, journal: j, log: newLifeLog(j.Life())}
	h.now, h.last, h.back = l, l, time.Time{}
	s.lives = append(s.lives, l.log)
	s.count.Lives++
	s.note("life ", j.Life().String())
	var err error
	if l.node, err = bus.Listen(b, bus.Life(j.Life())); err != nil {
		panic(err)
	}
	l.part, err = peer.NewMember(peer.MemberOptions{
		Settings: cluster.Settings{Index: h.index, Bus: b, Claims: s.claims.Of(h.name), Known: s.known(h)},
		Journal:  j, Keys: simKeys{s.keys.Of(h.name)},
		Dial:    func(to journal.Life) link.Conn[[]byte, []byte] { return l.node.Connect(bus.Life(to)) },
		Deposed: func(journal.Life) { l.set(&l.deposed) },
	})
	if err != nil {
		panic(err)
	}
	opts := hub.Options{ID: h.name, Limits: simLimits, Observer: l.log}
	l.part.Configure(&opts)
	l.promises = coretest.Watch(&opts)
	l.Hub = hub.New(opts)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	l.stopPart = func() {
		cancel()
		running.Wait()
		l.node.Close()
	}
	running.Go(func() {
		err := l.Recover(ctx)
		l.keys = l.NewKeys("test", hub.KeysOptions{})
		l.mu.Lock()
		l.ready, l.failed = err == nil, err
		l.mu.Unlock()
		if err == nil {
			if err := l.part.Run(ctx, l.Hub); err != nil {
				panic(err)
			}
		}
	})
}

// known returns what the journal of a hub knows of the others when it starts again.
func (s *sim) known(h *simHub) (all []cluster.Hub) {
	for _, o := range s.hubs {
		if h.last != nil && o != h && o.last != nil {
			l := o.last.journal.Life()
			all = append(all, cluster.Hub{Name: l.Hub, Epoch: l.Epoch, Index: o.index})
		}
	}
	return all
}

// stop ends the life of a hub. A hub that stops by its own will ends its tasks before, and goes on
// with all that are in the group; nil is for one that does not.
func (s *sim) stop(h *simHub, group *sync.WaitGroup) {
	l, gently := h.now, group != nil
	h.now = nil
	if !gently {
		l.set(&l.rough)
	}
	s.leave(l)
	s.running.Go(func() {
		if !gently {
			l.stopPart()
		}
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		defer cancel()
		if err := l.Close(ctx, "stopped"); err != nil {
			l.set(&l.rough)
		}
		if gently {
			group.Done()
			group.Wait()
			l.stopPart()
		}
		l.set(&l.stopped)
	})
}

// kill ends a hub as SIGKILL does. What still runs of it reaches nothing.
func (s *sim) kill(h *simHub) {
	s.count.Kills++
	s.net.Kill(h.name)
	s.store.kill(h.now.journal.Life())
	s.net.Resume(h.name) // whoever comes next is not paused
	h.paused = false
	s.stop(h, nil)
}

// usable reports whether a hub answers.
func (s *sim) usable(h *simHub) bool { return h.now != nil && !h.paused && h.now.is(&h.now.ready) }

// quorum reports whether a hub believes that it may take new work.
func (s *sim) quorum(h *simHub) bool {
	return s.usable(h) && !h.now.is(&h.now.deposed) && h.now.part.Cluster().HasQuorum()
}

// settle does what has become due: hubs that were taken over or could not start begin their next
// life, hubs come back, agents have joined, tasks were found.
func (s *sim) settle() {
	now := time.Now()
	for _, h := range s.hubs {
		switch {
		case h.now != nil && !h.paused && h.now.is(&h.now.deposed):
			s.note("deposed ", h.name)
			s.count.TakenOver++
			s.stop(h, nil)
			h.back = now.Add(s.upTo(400 * time.Millisecond))
			s.moment()
		case h.now != nil && h.now.error() != nil:
			s.note("could not start ", h.name)
			s.stop(h, nil)
			h.back = now.Add(s.upTo(400 * time.Millisecond))
			s.moment()
		case h.now == nil && !h.back.IsZero() && now.After(h.back) && h.last.is(&h.last.stopped):
			s.start(h)
			s.moment()
		}
	}
	s.takeJoined()
	s.takeFound()
	s.takeSent()
}

func (l *life) error() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// upTo draws a time.
func (s *sim) upTo(d time.Duration) time.Duration { return time.Duration(s.rnd.Int64N(int64(d))) }

// within draws a time.
func (s *sim) within(least, most time.Duration) time.Duration { return least + s.upTo(most-least) }

// chance is true so many times of a thousand.
func (s *sim) chance(of1000 int) bool { return s.rnd.IntN(1000) < of1000 }

// breaks notes a broken promise.
func (s *sim) breaks(format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	s.note("BROKEN ", what)
	if len(s.broken) < 10 {
		s.broken = append(s.broken, what)
	}
}

// note adds a line to the log.
func (s *sim) note(words ...string) {
	s.log = strconv.AppendInt(s.log, time.Since(s.began).Microseconds(), 10)
	s.log = append(s.log, ' ')
	for _, w := range words {
		s.log = append(s.log, w...)
	}
	s.log = append(s.log, '\n')
}
