package remote

import (
	"cmp"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// A task is transferred by one record. This is the side of the hub that has owned it: it hands a copy over,
// stores the record once the other hub has stored the copy, and has a copy of that hub's task from then on.

// Transfer is a task on its way to the hub that is to own it.
type Transfer struct {
	// Events are all of the task. The last one is the record of the transfer.
	Events []core.Event
	// Stored is the number up to which they are stored where the task was.
	Stored uint64
	// From is the requester, with the rights that its credential gives.
	From core.Principal
	// Keep lets the task continue when the hub that opened it is gone. Opener is the name of that hub.
	Keep   bool
	Opener string
	// Tried are the agents that have failed.
	Tried []core.AgentID
}

// Record names a transfer of a task by the number of its record.
type Record struct {
	Task core.TaskID
	Seq  uint64
}

// record returns the record of the transfer.
func (o *Transfer) record() core.Event { return o.Events[len(o.Events)-1] }

// handTime is how long another hub may take to accept a task.
const handTime = 5 * time.Second

// handing is a task that this hub hands to another one.
type handing struct {
	task  *task.Task
	to    string
	seq   uint64 // of the record
	timer *time.Timer
}

// Place implements [hub.Remote]: it hands a task to another hub, for which it leaves.
func (r *Hubs) Place(t *task.Task, p hub.Placement) error {
	o := Transfer{From: p.From, Keep: p.Keep, Opener: cmp.Or(p.Opener, r.name), Tried: p.Tried}
	if o.Events, o.Stored = t.Copy(); o.Events == nil {
		return nil // it has ended
	}
	if err := r.links.Hand(p.To, o); err != nil {
		return err
	}
	rec := Record{t.ID(), o.record().Seq}
	g := &handing{task: t, to: p.To, seq: rec.Seq}
	g.timer = time.AfterFunc(handTime, func() { r.Refused(p.To, rec) })
	r.handing[rec.Task] = g
	r.Count("move.handed")
	return nil
}

// handed returns what this hub hands to another one, and forgets it; nil if it does not. Callers hold the lock.
func (r *Hubs) handed(to string, rec Record) *handing {
	g := r.handing[rec.Task]
	if g == nil || g.to != to || g.seq != rec.Seq {
		return nil
	}
	g.timer.Stop()
	delete(r.handing, rec.Task)
	return g
}

// Taken says that a hub has stored a task that this one has handed to it: see [Links.Hand].
func (r *Hubs) Taken(by string, rec Record) {
	r.Lock()
	defer r.Unlock()
	g := r.handed(by, rec)
	if g == nil || !g.task.Gone() { // it was too late, or the task has ended
		_ = r.links.Kept(by, rec)
		return
	}
	r.Count("move.gone")
	r.Placed(g.task)
	r.follow(by, g.task)
}

// Refused says that a hub does not take a task that this one has handed to it.
func (r *Hubs) Refused(by string, rec Record) {
	r.Lock()
	g := r.handed(by, rec)
	r.Unlock()
	if g != nil {
		r.Count("move.refused")
		r.Unplaced(g.task, by)
	}
}

// refusedBy takes back what is on its way to a hub that is gone.
func (r *Hubs) refusedBy(name string) {
	r.Lock()
	var all []Record
	for id, g := range r.handing {
		if g.to == name {
			all = append(all, Record{id, g.seq})
		}
	}
	r.Unlock()
	slices.SortFunc(all, func(a, b Record) int { return cmp.Compare(a.Task, b.Task) })
	for _, rec := range all {
		r.Refused(name, rec)
	}
}
