package remote

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/lru"
	"github.com/dragoman-hub/dragoman/core/roster"
	"github.com/dragoman-hub/dragoman/core/rpc"
	"github.com/dragoman-hub/dragoman/core/task"
)

// Links carry frames to the other hubs. Their methods do not wait, and may be called with locks held. They return an
// error if the hub cannot be reached; a frame for which they return nil reaches it, once and in order, or the hub is
// reported as gone.
type Links interface {
	// Open passes a task to the hub that is to own it: see [hub.Session.Adopt].
	Open(to string, o hub.Opening) error
	// Do passes a command on a task to the hub that owns it: see [hub.Session.Perform].
	Do(to string, c core.Call) error
	// Hand passes a task to the hub that is to own it from now on: see [Hubs.Accept]. That hub says by Took whether it
	// has stored it: then [Hubs.Taken] is called here, else [Hubs.Refused]. If the task is not transferred any more,
	// that hub is told by Kept: see [Hubs.Kept].
	Hand(to string, t Transfer) error
	Took(to string, r Record, ok bool) error
	Kept(to string, r Record) error
	// Follow asks the owner for the events of a task after a cursor: see [Hubs.Extend]. If the owner does not know the
	// task, [Hubs.Unknown] is called.
	Follow(to string, id core.TaskID, after core.Cursor) error
	// Leave ends Follow, since the task has gone on elsewhere.
	Leave(to string, id core.TaskID) error
	// Tell tells a hub something, once and in the order of the other frames.
	Tell(to string, t rpc.Told) error
	// Ask asks a hub. Unlike the others it waits, for the answer or until ctx ends.
	Ask(ctx context.Context, to string, r rpc.Request) (json.RawMessage, error)
	// Dial connects a principal to a service of a hub.
	Dial(to, service string, by core.Principal) (rpc.Conn, error)
}

// Options of Hubs.
type Options struct {
	Links Links
	// Name is that of this hub, and Index stands in the ids of its tasks.
	Name  string
	Index int
	// Shared is the journal that all hubs can read: then tasks are transferred, and tasks of hubs that are gone can be
	// read. Else it is nil.
	Shared journal.Shared
	// Cluster is told of the agents of this hub, and has the claims of their ids; may be nil.
	Cluster *cluster.Cluster
	// Keys has the keys of requests for all hubs; nil without Shared.
	Keys KeyStore
	Log  *slog.Logger
}

// Hubs are the other hubs of a cluster, for the engine of this one.
type Hubs struct {
	hub.Port
	links   Links
	shared  journal.Shared   // may be nil
	cluster *cluster.Cluster // may be nil
	keys    KeyStore
	node    *rpc.Node
	name    string
	index   int
	log     *slog.Logger
	view    *view
	missed  missedNotifications

	// The lock of the engine guards what follows.
	fetched map[core.TaskID]*fetched
	// remains are what hubs that are gone have left in the journal, for lists.
	remains map[string]*remains
	// settling has a token when copies of tasks of hubs that are gone have to be looked at.
	settling chan struct{}
	// handing are the tasks on their way to other hubs, arriving those on their way to this one, arrivals those of
	// them to be stored, and rejected those that were stored and do not come.
	handing  map[core.TaskID]*handing
	arriving map[core.TaskID]*arrival
	// copied are the arrivals of which the part of this hub may have copies, of tasks of other hubs.
	copied   map[core.TaskID]*arrival
	arrivals chan *arrival
	rejected chan *arrival
	// cancels are those of copies, until they have ended: a hub may be gone before it has stored one.
	cancels map[core.TaskID]core.Call
	standIn *hub.Session // for tasks that have come here, and whose requester has no connection here

	joins uint64                                   // how many times a hub has come up
	known *lru.Cache[core.ThreadID, *conversation] // the latest threads
}

// New returns the other hubs, of which none is up yet. [hub.New] attaches them to an engine.
func New(o Options) *Hubs {
	r := &Hubs{
		links: o.Links, shared: o.Shared, cluster: o.Cluster, keys: o.Keys, name: o.Name, index: o.Index, log: o.Log, view: newView(),
		fetched: map[core.TaskID]*fetched{}, remains: map[string]*remains{}, settling: make(chan struct{}, 1),
		handing: map[core.TaskID]*handing{}, arriving: map[core.TaskID]*arrival{}, copied: map[core.TaskID]*arrival{}, arrivals: make(chan *arrival, mostArrivals), rejected: make(chan *arrival, mostArrivals),
		cancels: map[core.TaskID]core.Call{},
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	r.node = rpc.NewNode(r, o.Name, o.Index, r.log)
	return r
}

// RPC implements [rpc.Host].
func (r *Hubs) RPC() *rpc.Node { return r.node }

// Attach implements [hub.Remote].
func (r *Hubs) Attach(p hub.Port) {
	r.Port = p
	r.known = newConversations(p.Limits.Threads)
	r.answer()
	if r.cluster != nil {
		p.Roster.Watch(func(e *roster.Entry) { r.cluster.SetLoad(e.ID, loadOf(e)) })
	}
	if r.shared != nil {
		p.Go(r.takeArrivals)
		p.Go(r.settle)
	}
}

// Ready implements [hub.Remote]: this hub has to hear a majority.
func (r *Hubs) Ready() error {
	if r.cluster != nil && !r.cluster.HasQuorum() {
		return core.NewFault(core.CodeOverloaded, "this hub does not hear a majority of its cluster and takes nothing new: ask another hub, or again in a moment")
	}
	return nil
}

// HubUp adds a hub to those that may own tasks, or changes its index. It is called for each life.
func (r *Hubs) HubUp(name string, index int) {
	r.Lock()
	defer r.Unlock()
	r.view.add(name, index)
	delete(r.remains, name)
	for _, a := range r.arriving { // of a life before, which nobody may have taken over
		a.alone = a.alone || a.from == name
	}
	r.settleSoon()
	r.joins++
	r.PeerUp(name)
}

// HubDraining says that a hub takes nothing new: its agents get no tasks from here.
func (r *Hubs) HubDraining(name string) { r.view.change(name, func(o *other) { o.draining = true }) }

// Connected follows the tasks of a hub, of which this one has copies, over a new connection to it: each
// from the last event that has come.
func (r *Hubs) Connected(name string) {
	r.Lock()
	defer r.Unlock()
	for _, t := range r.copiesOf(name) {
		r.follow(name, t)
	}
	for _, id := range slices.Sorted(maps.Keys(r.fetched)) {
		if r.fetched[id].from == name {
			_ = r.links.Follow(name, id, core.Cursor{})
		}
	}
	for _, id := range r.expectedOf(name) {
		_ = r.links.Follow(name, id, core.Cursor{})
	}
}

// follow asks a hub, over a connection over which it was not asked before, for the events of a task that the copy
// of it does not have. Without a connection it does nothing: over the next one [Hubs.Connected] asks. Callers hold the
// lock.
func (r *Hubs) follow(hub string, t *task.Task) {
	_ = r.links.Follow(hub, t.ID(), t.AskAnew())
}

// HubGone removes the agents of a hub, in one step. Of its tasks the copies stay: see [Hubs.TakenOver] and
// [Hubs.Connected]. What was on its way to it stays here. Who waits for a task of it gets no answer any more.
func (r *Hubs) HubGone(name string) {
	r.Lock()
	r.view.change(name, func(o *other) { o.up, o.gone, o.taken, o.since = false, true, false, silentSince{} })
	r.Roster.RemoveHub(name)
	after := r.PeerGone(name)
	for id, f := range r.fetched {
		if f.from == name {
			r.wake(id, core.NewFault(core.CodeUnreachable, "hub %s, which has task %s, is gone: ask again in a moment", name, id))
		}
	}
	r.Unlock()
	after()
	r.refusedBy(name)
}

// AgentDown removes an agent of another hub.
func (r *Hubs) AgentDown(hub string, id core.AgentID) {
	r.Lock()
	defer r.Unlock()
	if e, ok := r.Roster.Get(id); ok && e.Hub == hub {
		r.Roster.Remove(id)
	}
}
