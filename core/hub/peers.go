package hub

import (
	"context"
	"encoding/json"

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
	// Follow asks the owner for the events of a task: see [Hub.Extend]. If the owner does not know
	// the task, [Hub.Unknown] is called.
	Follow(hub string, id core.TaskID) error
	// Tell tells a hub something, once and in the order of the other commands: see [Hub.Told].
	Tell(hub string, n News) error
	// Ask asks a hub: see [Hub.Answer]. Unlike the others it waits, for the answer or until ctx ends.
	Ask(ctx context.Context, hub string, q Inquiry) (json.RawMessage, error)
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
	peers   Peers // nil for a hub alone
	byIndex map[int]string
	indices map[string]int
	up      map[string]bool // the names of those that are connected
	hubs    map[string]*otherHub
	// draining are the hubs that take nothing new.
	draining map[string]bool
	// orphans are the mirrors of a hub that is gone, until they have their ends or the hub is back.
	orphans map[string][]*task.Task
	fetched map[core.TaskID]*fetched
	// legacies are what hubs that are gone have left in the journal.
	legacies map[string]*legacy
}

func newOtherHubs(peers Peers) otherHubs {
	return otherHubs{
		peers: peers, byIndex: map[int]string{}, indices: map[string]int{}, up: map[string]bool{}, draining: map[string]bool{}, hubs: map[string]*otherHub{},
		orphans: map[string][]*task.Task{}, fetched: map[core.TaskID]*fetched{}, legacies: map[string]*legacy{},
	}
}

// HubUp adds a hub to those that may own tasks, or changes its index.
func (h *Hub) HubUp(name string, index int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.others.byIndex[index], h.others.indices[name], h.others.up[name] = name, index, true
	delete(h.others.orphans, name)
	h.talk.joins++
	h.talk.changed(h.others.up)
	delete(h.others.draining, name)
	delete(h.others.legacies, name)
	h.questions.HubUp(name)
	h.tellSpent(name)
	h.packsUp(name)
}

// HubDraining says that a hub takes nothing new: its agents get no tasks from here.
func (h *Hub) HubDraining(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.others.draining[name] = true
}

// Connected follows the tasks of a hub, of which this one has mirrors, over a new connection to it.
// What it knows of them replaces what its life before has said and not stored.
func (h *Hub) Connected(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.mirrorsOf(name) {
		_ = h.others.peers.Follow(name, t.ID()) // it fails if that connection has ended too
	}
	for id := range h.others.fetched {
		if owner, _ := h.ownerOf(task.OwnerOf(id)); owner == name {
			_ = h.others.peers.Follow(name, id)
		}
	}
	for id := range h.talk.expected {
		if owner, _ := h.ownerOf(task.OwnerOf(id)); owner == name {
			_ = h.others.peers.Follow(name, id)
		}
	}
}

// mirrorsOf returns the mirrors of the tasks of a hub that have not ended. Callers hold mu.
func (h *Hub) mirrorsOf(name string) (all []*task.Task) {
	index, known := h.others.indices[name]
	for _, t := range h.tasks.InMemory() {
		if known && t.IsMirror() && task.OwnerOf(t.ID()) == index && !t.HasEnded() {
			all = append(all, t)
		}
	}
	return all
}

// HubGone removes the agents of a hub, in one step. Its tasks keep their mirrors: see
// [Hub.Settled] and [Hub.Connected]. Who waits for a task of it gets no answer any more, and
// whoever wants the task next asks again.
func (h *Hub) HubGone(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.others.up, name)
	h.untellSpent(name)
	h.talk.changed(h.others.up)
	h.roster.RemoveHub(name)
	h.questions.HubGone(name)
	h.packsGone(name)
	h.others.orphans[name] = h.mirrorsOf(name)
	for id := range h.others.fetched {
		if owner, _ := h.ownerOf(task.OwnerOf(id)); owner == name {
			h.wake(id, core.NewFault(core.CodeUnreachable, "hub %s, which has task %s, is gone: ask again in a moment", name, id))
		}
	}
}

// AgentUp adds an agent of another hub, or replaces what is known of it. It does nothing if this
// hub has an agent with the id.
func (h *Hub) AgentUp(a RemoteAgent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a.Entry.Hub, a.Entry.Member = a.Hub, &elsewhere{a.Principal}
	h.roster.Put(a.Entry)
}

// AgentDown removes an agent of another hub.
func (h *Hub) AgentDown(hub string, id core.AgentID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e, ok := h.roster.Get(id); ok && e.Hub == hub {
		h.roster.Remove(id)
	}
}

// ownerOf returns the other hub that owns a task, by its id; false if this hub does, or if no hub
// of the cluster has the index. Callers hold mu.
func (h *Hub) ownerOf(index int) (hub string, ok bool) {
	hub, ok = h.others.byIndex[index]
	return hub, ok && h.others.peers != nil
}
