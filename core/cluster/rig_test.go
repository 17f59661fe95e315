package cluster_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// rig is a cluster of hubs without engines, in a synctest bubble.
type rig struct {
	t      testing.TB
	net    *coretest.Network
	claims *coretest.Claims
	store  *store
	hubs   map[string]*testHub
	// change changes the settings of the hubs that start.
	change func(*cluster.Settings)
}

func newRig(t testing.TB, seed uint64) *rig {
	n := coretest.NewNetwork(seed)
	return &rig{t: t, net: n, claims: coretest.NewClaims(n), store: &store{net: n, epochs: map[string]uint64{}, by: map[journal.Life]journal.Life{}}, hubs: map[string]*testHub{}}
}

// rigOf is a rig in which hubs of these names run and have met.
func rigOf(t testing.TB, names ...string) *rig {
	r := newRig(t, 1)
	for _, name := range names {
		r.start(name)
	}
	r.until("the cluster is formed", func() bool {
		for _, h := range r.hubs {
			if !h.c.HasQuorum() {
				return false
			}
		}
		return true
	})
	return r
}

// until waits for something that has to happen within ten seconds.
func (r *rig) until(what string, is func() bool) {
	r.t.Helper()
	r.within(10*time.Second, what, is)
}

// within waits for something, and returns how long it took.
func (r *rig) within(d time.Duration, what string, is func() bool) time.Duration {
	r.t.Helper()
	began := time.Now()
	for !is() {
		if time.Since(began) >= d {
			for _, name := range slices.Sorted(maps.Keys(r.hubs)) {
				all, stale := r.hubs[name].c.Hubs()
				r.t.Logf("%s (stale: %t, quorum: %t): %+v", name, stale, r.hubs[name].c.HasQuorum(), all)
				r.t.Log(strings.Join(r.hubs[name].events(), "\n  "))
			}
			r.t.Fatalf("%s: got nothing within %v", what, d)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return time.Since(began)
}

// testHub is a hub that mirrors what it is told.
type testHub struct {
	rig  *rig
	name string
	life journal.Life
	c    *cluster.Cluster
	stop context.CancelFunc
	done chan struct{}

	mu      sync.Mutex
	log     []string
	hubs    map[journal.Life]map[core.AgentID]cluster.Entry
	own     map[core.AgentID]cluster.Entry
	deposed journal.Life
	silent  map[string][2]int // how often it was told that another one is silent, and that it is heard again
	numbers uint64
	ended   bool
	onUp    func(core.AgentID)
	onWin   func()
	keeps   bool // agents do not leave when another hub wants them
}

// start begins a life of a hub.
func (r *rig) start(name string) *testHub {
	r.t.Helper()
	var err error
	h := &testHub{rig: r, name: name, life: r.store.begin(name), done: make(chan struct{}), hubs: map[journal.Life]map[core.AgentID]cluster.Entry{}, own: map[core.AgentID]cluster.Entry{}, silent: map[string][2]int{}}
	s := cluster.Settings{
		Life: h.life, Index: int(name[0] - 'a'), Bus: r.net.Bus(name), Claims: r.claims.Of(name), Address: name + ":8080",
		Callbacks: cluster.Callbacks{
			HubUp: h.hubUp, HubChanged: h.hubChanged, HubGone: h.hubGone,
			AgentUp: h.agentUp, AgentChanged: h.agentChanged, AgentDown: h.agentDown,
			TakeOver: func(ctx context.Context, of journal.Life) error {
				err := r.store.takeOver(ctx, h.life, of)
				if err == nil && h.onWin != nil {
					h.onWin()
				}
				return err
			},
			Silent: func(ctx context.Context, hub string) {
				h.silence(hub, 1, 0)
				<-ctx.Done()
				h.silence(hub, 0, 1)
			},
			TakenOver: func(of, by journal.Life) { h.note("%s taken over by %s", of, by) },
			Deposed:   h.isDeposed,
			Release:   h.release,
		},
	}
	if r.change != nil {
		r.change(&s)
	}
	if h.c, err = cluster.New(s); err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	h.stop = cancel
	r.hubs[name] = h
	go func() {
		defer close(h.done)
		if err := h.c.Run(ctx); err != nil {
			r.t.Errorf("the cluster of %s: got %v, want no error", name, err)
		}
	}()
	return h
}

// kill ends a hub without a word.
func (h *testHub) kill() {
	h.rig.net.Kill(h.name)
	h.leave()
}

// leave ends a hub with a word.
func (h *testHub) leave() {
	h.mu.Lock()
	h.ended = true
	h.mu.Unlock()
	h.stop()
	<-h.done
	if h.rig.hubs[h.name] == h {
		delete(h.rig.hubs, h.name)
	}
}

// end ends all hubs.
func (r *rig) end() {
	for _, h := range r.hubs {
		h.leave()
	}
}

func (h *testHub) note(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.log = append(h.log, fmt.Sprintf(format, args...))
}

func (h *testHub) silence(of string, silent, heard int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.silent[of]
	h.silent[of] = [2]int{n[0] + silent, n[1] + heard}
}

func (h *testHub) events() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.log)
}

func (h *testHub) saw(event string) bool { return slices.Contains(h.events(), event) }

func (h *testHub) hubUp(o cluster.Hub) {
	h.note("%s up", o.Life())
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.hubs {
		if l.Hub == o.Name {
			h.rig.t.Errorf("%s came up at %s: want HubGone of %s before it", o.Life(), h.name, l)
		}
	}
	h.hubs[o.Life()] = map[core.AgentID]cluster.Entry{}
}

func (h *testHub) hubChanged(o cluster.Hub) { h.note("%s is %s", o.Life(), o.State) }

func (h *testHub) hubGone(l journal.Life) {
	h.note("%s gone", l)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hubs[l] == nil {
		h.rig.t.Errorf("%s is gone at %s: want HubUp before it", l, h.name)
	}
	delete(h.hubs, l)
}

func (h *testHub) agentUp(of journal.Life, e cluster.Entry) {
	h.note("%s at %s up", e.Card.ID, of)
	h.set(of, e, false)
	h.mu.Lock()
	up := h.onUp
	h.mu.Unlock()
	if up != nil {
		up(e.Card.ID)
	}
}

func (h *testHub) agentChanged(of journal.Life, e cluster.Entry) {
	h.note("%s at %s changed", e.Card.ID, of)
	h.set(of, e, true)
}

func (h *testHub) set(of journal.Life, e cluster.Entry, had bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, has := h.hubs[of][e.Card.ID]; h.hubs[of] == nil || has != had {
		h.rig.t.Errorf("the agent %s of %s at %s: known before: %t, want %t, and a hub that is up", e.Card.ID, of, h.name, has, had)
		return
	}
	h.hubs[of][e.Card.ID] = e
}

func (h *testHub) agentDown(of journal.Life, id core.AgentID) {
	h.note("%s at %s down", id, of)
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, has := h.hubs[of][id]; !has {
		h.rig.t.Errorf("the agent %s of %s went down at %s: want it to be up before", id, of, h.name)
	}
	delete(h.hubs[of], id)
}

func (h *testHub) isDeposed(by journal.Life) {
	h.note("deposed by %s", by)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deposed = by
}

// release lets the agent go to another hub.
func (h *testHub) release(r cluster.Release) {
	h.mu.Lock()
	e, has := h.own[r.Agent]
	left := !has || e.Connection > r.Connection
	if !left && (r.Must || !h.keeps && !e.Principal.Authenticated) {
		delete(h.own, r.Agent)
		left = true
		h.c.Unclaim(r.Agent, e.Connection)
	}
	h.mu.Unlock()
	h.note("asked for %s: %t", r.Agent, left)
	r.Answer(left)
}

// join connects an agent.
func (h *testHub) join(ctx context.Context, id core.AgentID, p core.Principal) error {
	h.mu.Lock()
	h.numbers++
	e := cluster.Entry{Card: core.Card{ID: id, Name: string(id), Dialect: "native"}, Principal: p, Connection: h.numbers, Since: time.Now().UTC()}
	h.mu.Unlock()
	if err := h.c.Claim(ctx, e); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return core.NewFault(core.CodeUnreachable, "the hub has ended")
	}
	if was, has := h.own[id]; has && was.Connection > e.Connection {
		h.c.Unclaim(id, e.Connection)
		return core.NewFault(core.CodeConflict, "a newer connection is here")
	}
	h.own[id] = e
	h.c.Put(e)
	return nil
}

// mustJoin connects an agent that says nothing of itself.
func (h *testHub) mustJoin(id core.AgentID) {
	h.rig.t.Helper()
	if err := h.join(context.Background(), id, core.Principal{ID: string(id), Authenticated: true}); err != nil {
		h.rig.t.Fatalf("joining %s at %s: got %v, want no error", id, h.name, err)
	}
}

// part disconnects an agent.
func (h *testHub) part(id core.AgentID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e, has := h.own[id]; has {
		delete(h.own, id)
		h.c.Unclaim(id, e.Connection)
	}
}

// knows returns the agents of all hubs as one hub knows them, itself included.
func (h *testHub) knows() map[string]cluster.Entry {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[string]cluster.Entry{}
	for id, e := range h.own {
		all[h.life.String()+" "+string(id)] = e
	}
	for l, agents := range h.hubs {
		for id, e := range agents {
			all[l.String()+" "+string(id)] = e
		}
	}
	return all
}

// agree reports whether all hubs know the same, which is what each has; if not, how.
func (r *rig) disagreement() string {
	want := map[string]cluster.Entry{}
	for _, h := range r.hubs {
		h.mu.Lock()
		for id, e := range h.own {
			want[h.life.String()+" "+string(id)] = e
		}
		h.mu.Unlock()
	}
	for name, h := range r.hubs {
		if d := cmp.Diff(want, h.knows()); d != "" {
			return fmt.Sprintf("what %s knows (-want +got):\n%s", name, d)
		}
	}
	return ""
}

func (r *rig) untilAgreed() {
	r.t.Helper()
	defer func() {
		if r.t.Failed() {
			r.t.Log(r.disagreement())
		}
	}()
	r.until("all hubs know the same agents", func() bool { return r.disagreement() == "" })
}

// owner returns the life that has the tasks of a hub.
func (h *testHub) owner(index int) journal.Life {
	all, _ := h.c.Hubs()
	for _, o := range all {
		switch {
		case o.Index == index && o.TakenBy != nil:
			return *o.TakenBy
		case o.Index == index:
			return o.Life()
		}
	}
	return journal.Life{}
}

// state returns the state of a hub as another one sees it.
func (h *testHub) state(of string) cluster.State {
	all, _ := h.c.Hubs()
	for _, o := range all {
		if o.Name == of {
			return o.State
		}
	}
	return 0
}
