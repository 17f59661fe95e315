package peer

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster"
	"github.com/dragoman-hub/dragoman/core/cluster/remote"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/roster"
	"github.com/dragoman-hub/dragoman/core/timer"
)

// MemberOptions are what the part of a hub in a cluster needs.
type MemberOptions struct {
	// Settings are those of the [cluster.Cluster]; Callbacks and Life are set here.
	cluster.Settings
	Journal journal.Shared
	// Keys has the keys of requests for all hubs.
	Keys remote.KeyStore
	// Dial returns the connection to a life of another hub. Both hubs call it.
	Dial func(journal.Life) link.Conn[[]byte, []byte]
	// Deposed is called once when another hub has taken over the life of this one. The other hubs
	// may not know by whom, and the journal says it first: then by is the zero Life.
	Deposed func(by journal.Life)
	// Replace, if it is set, is called when a hub has said nothing for 2 s, and again when it is gone, without a word or with
	// one: what it does for others, somebody else has to do. It may wait, and ctx ends if the hub is heard again.
	Replace func(ctx context.Context, hub string)
	// Version is that of the program.
	Version string
}

// Member is the part of a hub in a cluster: it connects the engine with what package cluster knows
// of the other hubs, and with those hubs.
type Member struct {
	opts    MemberOptions
	cluster *cluster.Cluster
	peers   Peers
	hub     *hub.Hub
	hubs    *remote.Hubs
	deposed func(by journal.Life)

	ctx     context.Context //nolint:containedctx // that of Run
	running sync.WaitGroup

	mu    sync.Mutex
	conns map[journal.Life]context.CancelFunc
}

// NewMember returns the part of a hub that has not begun yet.
func NewMember(o MemberOptions) (*Member, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	m := &Member{opts: o, conns: map[journal.Life]context.CancelFunc{}}
	var once sync.Once
	m.deposed = func(by journal.Life) {
		if o.Deposed != nil {
			once.Do(func() { o.Deposed(by) })
		}
	}
	o.Life = o.Journal.Life()
	o.Callbacks = cluster.Callbacks{
		HubUp: m.hubUp, HubChanged: m.hubChanged, HubGone: m.hubGone,
		AgentUp: m.agentUp, AgentChanged: m.agentUp,
		AgentDown: func(of journal.Life, id core.AgentID) { m.hubs.AgentDown(of.Hub, id) },
		TakeOver:  m.takeOver, TakenOver: func(of, _ journal.Life) { m.hubs.TakenOver(of.Hub) }, Deposed: m.deposed,
		Silent:  o.Replace,
		Release: func(r cluster.Release) { m.running.Go(func() { m.hubs.Release(m.ctx, r) }) },
	}
	var err error
	if m.cluster, err = cluster.New(o.Settings); err != nil {
		return nil, err
	}
	m.hubs = remote.New(remote.Options{Links: &m.peers, Name: o.Life.Hub, Index: o.Index, Shared: o.Journal, Cluster: m.cluster, Keys: o.Keys, Log: o.Log})
	return m, nil
}

// open says which other hubs take something new; "" if there are none.
func (m *Member) open() string {
	var others []string
	for _, o := range m.cluster.Open() {
		if o.Address != "" {
			o.Name += " at " + o.Address
		}
		others = append(others, o.Name)
	}
	if others == nil {
		return ""
	}
	return "go to hub " + strings.Join(others, ", or to hub ")
}

// Cluster returns what the hub knows of the others.
func (m *Member) Cluster() *cluster.Cluster { return m.cluster }

// Configure sets what the engine needs for the cluster.
func (m *Member) Configure(o *hub.Options) {
	o.Remote, o.Requests, o.Node, o.Journal = m.hubs, m.hubs, m.hubs.RPC(), m.hubs.Journal()
	o.OnDrain, o.Open = func() { m.cluster.SetDraining(true) }, m.open
}

// Run takes part in the cluster until ctx ends. It returns once all connections to other hubs have
// ended. It is called once.
func (m *Member) Run(ctx context.Context, h *hub.Hub) error {
	m.hub = h
	var cancel context.CancelFunc
	m.ctx, cancel = context.WithCancel(ctx)
	defer m.running.Wait()
	defer cancel()
	m.running.Go(func() {
		select {
		case <-m.opts.Journal.Deposed(): // who has taken it over may be gone already, and have told nobody
			m.deposed(journal.Life{})
		case <-m.ctx.Done():
		}
	})
	return m.cluster.Run(ctx)
}

// hubUp connects to a hub.
func (m *Member) hubUp(h cluster.Hub) {
	life := h.Life()
	ctx, cancel := context.WithCancel(m.ctx)
	m.mu.Lock()
	m.conns[life] = cancel
	m.mu.Unlock()
	o := m.peers.Add(m.hub, m.hubs, Options{Name: h.Name, Epoch: h.Epoch, Version: m.opts.Version, Log: m.opts.Log})
	m.hubs.HubUp(h.Name, h.Index) // it tells the other hub things
	m.hubChanged(h)
	conn := m.opts.Dial(life)
	m.running.Go(func() {
		defer o.Close()
		defer cancel()
		wait, logged := connectAgain, ""
		for {
			began := time.Now()
			ended := o.Run(ctx, conn)
			if o.hasTold() {
				return
			}
			reason := ended.Error()
			if time.Since(began) > connectAtMost {
				wait, logged = connectAgain, ""
			}
			if ctx.Err() == nil && reason != logged {
				logged = reason
				m.opts.Log.Warn("the connection to another hub has ended", "hub", h.Name, "reason", reason)
			}
			if timer.Sleep(ctx, wait) != nil {
				return
			}
			wait = min(2*wait, connectAtMost)
			conn = m.opts.Dial(life)
		}
	})
}

// hubChanged tells the engine that a hub takes nothing new, or is not heard.
func (m *Member) hubChanged(h cluster.Hub) {
	m.hubs.HubHeard(h.Name, h.State != cluster.Suspect)
	if h.State == cluster.Draining {
		m.hubs.HubDraining(h.Name)
	}
}

// connectAgain is how long after the end of a connection to a hub that is up the next one begins. After
// one that was short, as that to a hub of another version, it is twice as long, up to connectAtMost.
const connectAgain, connectAtMost = 20 * time.Millisecond, 5 * time.Second

// hubGone closes the connection to a hub and removes its agents.
func (m *Member) hubGone(life journal.Life) {
	m.mu.Lock()
	cancel := m.conns[life]
	delete(m.conns, life)
	m.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	m.hubs.HubGone(life.Hub)
	if m.opts.Replace != nil {
		m.running.Go(func() { m.opts.Replace(m.ctx, life.Hub) })
	}
}

func (m *Member) agentUp(of journal.Life, e cluster.Entry) {
	m.hubs.AgentUp(of.Hub, roster.Entry{
		Card: e.Card, Since: e.Since, OnlyByID: e.OnlyByID, Child: e.Child, Reported: e.Load.Reported,
		MinHops: e.Load.MinHops, HopsUntil: e.Load.HopsUntil,
		Load: core.Load{Active: e.Load.Active, Queued: e.Load.Queued},
	}, e.Principal)
}

// takeOver takes over the life of a hub that is gone, and ends its tasks. Those that move here do so
// afterwards: that may wait for more than their ends do.
func (m *Member) takeOver(ctx context.Context, of journal.Life) error {
	estate, err := m.opts.Journal.TakeOver(ctx, of)
	if err != nil {
		return err
	}
	rest, err := m.hubs.TakeOver(ctx, estate)
	if rest != nil {
		m.running.Go(func() { rest(m.ctx) })
	}
	return err
}
