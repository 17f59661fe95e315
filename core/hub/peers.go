package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/roster"
	"github.com/dragoman-hub/dragoman/core/task"
)

// Peers carries commands to the other hubs of a cluster. Its methods do not wait, and may be
// called with locks held. They return an error if the hub cannot be reached; a command for which
// they return nil reaches it, once and in order, or the hub is reported as gone.
type Peers interface {
	// Open passes a task to the hub that is to own it: see [Session.Adopt].
	Open(hub string, o Opening) error
	// Do passes a command on a task to the hub that owns it: see [Session.Perform].
	Do(hub string, c core.Call) error
	// Hand passes a task to the hub that is to own it from now on: see [Session.Accept]. The hub says
	// by Took whether it has stored it: then [Hub.Taken] is called here, else [Hub.Refused]. If the
	// task does not move there any more, that hub is told by Kept: see [Hub.Kept].
	Hand(hub string, o Handover) error
	Took(hub string, m Move, ok bool) error
	Kept(hub string, m Move) error
	// Follow asks the owner for the events of a task after a cursor: see [Hub.Extend]. If the owner does
	// not know the task, [Hub.Unknown] is called.
	Follow(hub string, id core.TaskID, after core.Cursor) error
	// Leave ends Follow, since the task has moved on.
	Leave(hub string, id core.TaskID) error
	// Tell tells a hub something, once and in the order of the other commands: see [Hub.Told].
	Tell(hub string, n News) error
	// Ask asks a hub: see [Hub.Answer]. Unlike the others it waits, for the answer or until ctx ends.
	Ask(ctx context.Context, hub string, q Inquiry) (json.RawMessage, error)
	// Visit connects a principal to a service of a hub: see [Hub.Visited].
	Visit(hub, service string, by core.Principal) (Conn, error)
}

// Opening is a task that was opened at one hub and that another one is to own.
type Opening struct {
	// Opened is its first event.
	Opened core.Event
	// From is the requester, with the rights that its credential gives.
	From core.Principal
	// Keep lets the task continue when the hub that opened it is gone. Private delivers a notice
	// to its addressee alone.
	Keep, Private bool
}

// RemoteAgent is an agent that is connected to another hub.
type RemoteAgent struct {
	// Hub is the name of that hub.
	Hub string
	roster.Entry
	// Principal is that of its connection.
	Principal core.Principal
}

// elsewhere is the connection of an agent at another hub, as the roster sees it.
type elsewhere struct{ principal core.Principal }

// Principal implements [roster.Member].
func (e *elsewhere) Principal() core.Principal { return e.principal }

// otherHubs are the other hubs of the cluster. Hub.mu guards them.
type otherHubs struct {
	peers   Peers  // nil for a hub alone
	name    string // of this hub
	byIndex map[int]string
	indices map[string]int
	up      map[string]bool // the names of those that are connected
	hubs    map[string]*otherHub
	// noticed are the notices of this hub of which the others have not said whether somebody
	// subscribes to them, and those hubs.
	noticed map[core.TaskID]map[string]bool
	// draining are the hubs that take nothing new.
	draining map[string]bool
	// silent are the hubs that are not heard and not gone, and since when: see [Hub.HubHeard].
	silent map[string]time.Time
	// sent are the agents of other hubs to which tasks went that have not ended.
	sent    map[core.TaskID]core.AgentID
	untold  untold
	fetched map[core.TaskID]*fetched
	// legacies are what hubs that are gone have left in the journal, for lists.
	legacies map[string]*legacy

	// gone are the hubs that are gone; true once another hub has taken the life over: from then on the
	// journal says what becomes of their tasks.
	gone map[string]bool
	// settling has a token when the mirrors of hubs that are gone have to be looked at.
	settling chan struct{}

	// handing are the tasks on their way to other hubs; handedAll is closed when there are none any
	// more. arriving are those on their way to this one, arrivals those of them to be stored, and dismissed
	// those that were stored and do not come.
	handing   map[core.TaskID]*handing
	handedAll chan struct{}
	arriving  map[core.TaskID]*arrival
	arrivals  chan *arrival
	dismissed chan *arrival
	// orphans are the jobs of agents that have gone and come to another hub.
	orphans map[core.AgentID][]orphan
	// cancels are those of mirrors, until they have ended: a hub may be gone before it has stored one.
	cancels map[core.TaskID]core.Call
	standIn *Session // for jobs that have moved here, and whose requester has no connection here
}

func newOtherHubs(o Options) otherHubs {
	if o.Peers == nil {
		return otherHubs{}
	}
	return otherHubs{
		peers: o.Peers, name: o.Name, byIndex: map[int]string{}, indices: map[string]int{}, fetched: map[core.TaskID]*fetched{}, legacies: map[string]*legacy{},
		up: map[string]bool{}, draining: map[string]bool{}, silent: map[string]time.Time{}, sent: map[core.TaskID]core.AgentID{}, hubs: map[string]*otherHub{}, noticed: map[core.TaskID]map[string]bool{}, gone: map[string]bool{}, settling: make(chan struct{}, 1),
		handing: map[core.TaskID]*handing{}, handedAll: make(chan struct{}), arriving: map[core.TaskID]*arrival{}, arrivals: make(chan *arrival, mostArrivals), dismissed: make(chan *arrival, mostArrivals),
		orphans: map[core.AgentID][]orphan{}, cancels: map[core.TaskID]core.Call{},
	}
}

// HubUp adds a hub to those that may own tasks, or changes its index.
func (h *Hub) HubUp(name string, index int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.others.byIndex[index], h.others.indices[name], h.others.up[name] = name, index, true
	delete(h.others.gone, name)
	h.tellNewest(name)
	h.talk.joins++
	delete(h.others.draining, name)
	delete(h.others.silent, name)
	delete(h.others.legacies, name)
	h.questions.HubUp(name)
	h.tellSpent(name)
	h.tellSettings(name)
	h.packsUp(name)
	h.topics.HubUp(name)
}

// HubDraining says that a hub takes nothing new: its agents get no tasks from here.
func (h *Hub) HubDraining(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.others.draining[name] = true
}

// Connected follows the tasks of a hub, of which this one has mirrors, over a new connection to it: each
// from the last event that has come. What it knows of them replaces what its life before has said and
// not stored.
func (h *Hub) Connected(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.mirrorsOf(name) {
		h.follow(name, t)
	}
	for _, id := range slices.Sorted(maps.Keys(h.others.fetched)) {
		if h.others.fetched[id].from == name {
			_ = h.others.peers.Follow(name, id, core.Cursor{})
		}
	}
	for _, id := range h.expected(name) {
		_ = h.others.peers.Follow(name, id, core.Cursor{})
	}
}

// follow asks a hub, over a connection over which it was not asked before, for the events of a task that the mirror
// of it does not have. Without a connection it does nothing: over the next one [Hub.Connected] asks. Callers hold mu.
func (h *Hub) follow(hub string, t *task.Task) {
	_ = h.others.peers.Follow(hub, t.ID(), t.AskAnew())
}

// mirrorsOf returns the mirrors of the tasks of a hub that have not ended. Callers hold mu.
func (h *Hub) mirrorsOf(name string) (all []*task.Task) {
	for _, t := range h.tasks.InMemory() {
		if owner, _ := h.owner(t); owner == name && t.IsMirror() && !t.HasEnded() {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b *task.Task) int { return cmp.Compare(a.ID(), b.ID()) })
	return all
}

// HubGone removes the agents of a hub, in one step. Its tasks keep their mirrors: see
// [Hub.Settled] and [Hub.Connected]. What was on its way to it stays here. Who waits for a task of it
// gets no answer any more.
func (h *Hub) HubGone(name string) {
	h.mu.Lock()
	delete(h.others.up, name)
	delete(h.others.silent, name)
	h.untellSpent(name)
	h.roster.RemoveHub(name)
	h.packsGone(name)
	h.topics.HubGone(name)
	notices := h.noticesGone(name)
	h.others.gone[name] = false
	for id, f := range h.others.fetched {
		if f.from == name {
			h.wake(id, core.NewFault(core.CodeUnreachable, "hub %s, which has task %s, is gone: ask again in a moment", name, id))
		}
	}
	h.mu.Unlock()
	h.questions.HubGone(name) // tasks of this hub may say how a question ended
	h.refusedBy(name)
	for _, notice := range notices {
		h.endNotice(notice, false)
	}
}

// AgentUp adds an agent of another hub, or replaces what is known of it. It does nothing if this
// hub has an agent with the id.
func (h *Hub) AgentUp(a RemoteAgent) {
	h.mu.Lock()
	a.Entry.Hub, a.Entry.Member = a.Hub, &elsewhere{a.Principal}
	h.roster.Put(a.Entry)
	waiting := len(h.others.orphans[a.Entry.ID]) > 0
	h.mu.Unlock()
	if waiting {
		h.seek(a.Entry.ID, nil)
	}
}

// AgentDown removes an agent of another hub.
func (h *Hub) AgentDown(hub string, id core.AgentID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e, ok := h.roster.Get(id); ok && e.Hub == hub {
		h.roster.Remove(id)
	}
}

// owner returns the hub that owns a task, and whether that is another one. Callers hold mu.
func (h *Hub) owner(t *task.Task) (hub string, elsewhere bool) {
	if hub = t.Owner(); hub != "" {
		return hub, hub != h.others.name
	}
	return h.ownerOf(task.OwnerOf(t.ID()))
}

// ownerOf returns the other hub that first owned a task, by the index in its id; false if this hub
// did, or if no hub of the cluster has the index. Callers hold mu.
func (h *Hub) ownerOf(index int) (hub string, ok bool) {
	if h.others.peers == nil {
		return "", false
	}
	if hub, ok = h.others.byIndex[index]; ok || h.cluster == nil {
		return hub, ok
	}
	return h.cluster.NameOf(index) // it may know hubs that were gone when this one started
}
