package remote

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/lru"
	"github.com/dragoman-hub/dragoman/core/rpc"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/thread"
)

// A thread is one at all hubs: who owns a task tells the others that it was opened, and who gives one of the thread to
// an agent asks for the turns of those before, once: from then on it is told.

// latestUnread is how many of the latest tasks of a thread are asked for their turns.
const latestUnread = 256

// conversation is what this hub knows of a thread.
type conversation struct {
	// joins is that of the time when all hubs were asked for the tasks of the thread; 0 if they were not.
	joins uint64
	// unread are tasks of other hubs whose turns are not here, if they have any.
	unread []core.TaskID
}

func newConversations(threads int) *lru.Cache[core.ThreadID, *conversation] {
	return lru.New(lru.Options[core.ThreadID, *conversation]{Count: threads})
}

// The methods and news of threads. It is for the hub that asks, which shows of them what its readers may read.
const (
	// threadMethod asks for the latest tasks of a thread.
	threadMethod rpc.Method[core.ThreadID, []core.TaskID] = "thread"
	// turnsMethod asks for the turns of tasks that a hub owns, in order. Of more than a thread keeps it says the latest.
	turnsMethod rpc.Method[[]core.TaskID, turnsOfTasks] = "thread.turns"
)

// opened hears that another hub has a new task.
func (r *Hubs) opened(name string, o hub.OpenedTask) {
	r.Lock()
	defer r.Unlock()
	if r.IsAsked(o.Task) || !task.IsID(string(o.Task)) {
		return // it was opened here, noted and shown
	}
	r.Tasks.Learn(o.Task)
	if r.Began(o.Thread, o.Task) {
		r.expect(name, o.Task)
	}
	r.noteUnread(o.Thread, o.Task)
}

// noteUnread notes a task of another hub whose turns are to be asked for. Callers hold the lock.
func (r *Hubs) noteUnread(in core.ThreadID, id core.TaskID) {
	c, known := r.known.Get(in)
	switch {
	case !known: // all are asked for when the thread is wanted
	case len(c.unread) >= latestUnread:
		r.known.Remove(in)
	default:
		c.unread = append(c.unread, id)
	}
}

// expect shows a task of another hub to those who watch it, once it is here. Callers hold the lock.
func (r *Hubs) expect(name string, id core.TaskID) {
	if t := r.Tasks.Get(id); t != nil {
		r.Show(t)
		return
	}
	r.Expected[id] = name
	_ = r.links.Follow(name, id, core.Cursor{}) // else over the next connection, or from the journal
}

// came shows a task of another hub that was expected, if it is here. Callers hold the lock.
func (r *Hubs) came(id core.TaskID) {
	if _, ok := r.Expected[id]; !ok {
		return
	}
	delete(r.Expected, id)
	if t := r.Tasks.Get(id); t != nil {
		r.Show(t)
	}
}

// toldTurn is a turn with the id of who asked.
type toldTurn struct {
	core.Turn
	From string `json:"from,omitempty"`
	// Earlier is that of [core.Turn].
	Earlier bool `json:"earlier,omitempty"`
	// Files are without what is in them, which is kept where the task was.
	Files []core.File `json:"files,omitempty"`
}

func turnsOf(told []toldTurn) []core.Turn {
	all := make([]core.Turn, len(told))
	for i, t := range told {
		all[i] = t.Turn
		all[i].From, all[i].Earlier, all[i].Files = t.From, t.Earlier, t.Files
	}
	return all
}

func toldOf(turns []core.Turn) []toldTurn {
	all := make([]toldTurn, len(turns))
	for i, t := range turns {
		all[i] = toldTurn{Turn: t, From: t.From, Earlier: t.Earlier}
		for _, f := range t.Files {
			all[i].Files = append(all[i].Files, core.File{Name: f.Name, MediaType: f.MediaType})
		}
	}
	return all
}

// turnsOfTasks are what a hub says of the turns of tasks.
type turnsOfTasks struct {
	Turns []toldTurn    `json:"turns,omitempty"`
	Open  []core.TaskID `json:"open,omitempty"` // those that have no end that may be shown
}

// turnsHere is turnsMethod at this hub.
func (r *Hubs) turnsHere(ctx context.Context, _ core.Principal, all []core.TaskID) (out turnsOfTasks, err error) {
	for room := r.ThreadBytes(); len(all) > 0 && room >= 0; all = all[:len(all)-1] {
		id := all[len(all)-1]
		t, err := r.find(ctx, id)
		switch {
		case errors.Is(err, unknownTask):
		case err != nil:
			return out, err
		case t.State() != task.Ended:
			out.Open = append(out.Open, id)
		case t.IsDone() && !t.IsNotice():
			turns := hub.TurnsOf(t)
			for _, turn := range turns {
				room -= turn.Size()
			}
			out.Turns = append(toldOf(turns), out.Turns...)
		}
	}
	return out, nil
}

// find returns a task in memory or of any hub.
func (r *Hubs) find(ctx context.Context, id core.TaskID) (*task.Task, error) {
	if t := r.Tasks.Get(id); t != nil {
		return t, nil
	}
	return r.Find(ctx, id)
}

// Knows implements [hub.Remote].
func (r *Hubs) Knows(id core.ThreadID) bool {
	c, known := r.known.Get(id)
	return r.isAsked(c) && (!known || len(c.unread) == 0)
}

// isAsked reports whether all hubs that are up were asked for a conversation; nil for one that is not known.
// Callers hold the lock.
func (r *Hubs) isAsked(c *conversation) bool {
	return len(r.Up()) == 0 || c != nil && c.joins == r.joins
}

// Gather implements [hub.Remote].
func (r *Hubs) Gather(ctx context.Context, id core.ThreadID) (whole bool) {
	r.Lock()
	c, _ := r.known.Get(id)
	joins, asked := r.joins, r.isAsked(c)
	r.Unlock()
	if !asked {
		asked = r.gatherTasks(ctx, id, joins)
	}
	return r.gatherTurns(ctx, id) && asked
}

// gatherTasks asks the other hubs for the tasks of a thread. It reports whether all that are up have answered.
func (r *Hubs) gatherTasks(ctx context.Context, id core.ThreadID, joins uint64) bool {
	answers, missing := threadMethod.AskAll(ctx, r, hub.PartPrincipal, id)
	for _, a := range answers {
		for _, t := range a.Out {
			r.Index.Add(id, t, thread.Unknown)
		}
	}
	r.Lock()
	defer r.Unlock()
	all := r.Index.Latest(id, latestUnread) // with those that were told of meanwhile
	if task.IsID(string(id)) {
		all = append(all, core.TaskID(id)) // it began as a single task
	}
	c := &conversation{joins: joins}
	if slices.ContainsFunc(missing, func(name string) bool { return r.view.get(name).up }) {
		c.joins = 0
	}
	for _, t := range all {
		if _, remote := r.ownerOf(task.OwnerOf(t)); remote && !r.Threads.HasHad(id, t) {
			c.unread = append(c.unread, t)
		}
	}
	r.known.Put(id, c)
	return c.joins != 0
}

// gatherTurns asks the owners of tasks of a thread for their turns, or reads them in the journal. It reports
// whether it has those of all that have ended.
func (r *Hubs) gatherTurns(ctx context.Context, id core.ThreadID) (all bool) {
	r.Lock()
	of := map[string][]core.TaskID{}
	c, _ := r.known.Get(id)
	if c != nil {
		for _, t := range c.unread {
			owner, _ := r.ownerOf(task.OwnerOf(t))
			if o := r.view.get(owner); !o.up || o.isSilent() {
				owner = ""
			}
			of[owner] = append(of[owner], t)
		}
	}
	r.Unlock()
	all = true
	for owner, tasks := range of {
		tasks = slices.DeleteFunc(tasks, func(t core.TaskID) bool { return r.Threads.HasHad(id, t) })
		slices.Sort(tasks)
		said, err := r.turnsAt(ctx, owner, tasks)
		if err != nil {
			r.log.Info("the turns of a conversation could not be read", "thread", id, "hub", owner, "error", err)
			all = false
			said.Open = tasks
		}
		r.Threads.Add(id, turnsOf(said.Turns)...)
		r.Lock()
		c.unread = slices.DeleteFunc(c.unread, func(t core.TaskID) bool {
			return (slices.Contains(tasks, t) || r.Threads.HasHad(id, t)) && !slices.Contains(said.Open, t)
		})
		r.Unlock()
	}
	return all
}

// turnsAt returns the turns of tasks of a hub; "" for hubs that are gone, of which the journal knows.
func (r *Hubs) turnsAt(ctx context.Context, owner string, tasks []core.TaskID) (said turnsOfTasks, err error) {
	if owner != "" && len(tasks) > 0 {
		ctx, cancel := context.WithTimeout(ctx, rpc.AnswerTime)
		defer cancel()
		return turnsMethod.Ask(ctx, r, owner, hub.PartPrincipal, tasks)
	}
	for _, id := range tasks {
		t, _, err := r.findStored(ctx, id)
		switch {
		case err != nil && !errors.Is(err, unknownTask):
			return said, err
		case err != nil:
		case !t.Last().Body.Kind().Ends():
			said.Open = append(said.Open, id)
		case t.IsDone() && !t.IsNotice():
			said.Turns = append(said.Turns, toldOf(hub.TurnsOf(t))...)
		}
	}
	return said, nil
}

// settleExpected reads from the journal the tasks of a hub that is gone, which were told of and have
// not come. It returns the first error of the journal.
func (r *Hubs) settleExpected(ctx context.Context, name string) error {
	r.Lock()
	expected := r.expectedOf(name)
	r.Unlock()
	failed := make([]error, len(expected))
	task.EachAtOnce(expected, func(i int, id core.TaskID) {
		events, _, err := r.stored(ctx, id)
		var gap *journal.GapError
		switch {
		case errors.Is(err, journal.ErrUnknown): // the hub has told of it and stored nothing
			r.arrived(id)
		case err != nil && !errors.As(err, &gap):
			failed[i] = err
		default:
			r.extendWith(id, events, r.extend)
		}
	})
	return cmp.Or(failed...)
}

// expectedOf returns the tasks that a hub told of and that have not come, in order. Callers hold the lock.
func (r *Hubs) expectedOf(name string) (all []core.TaskID) {
	for id, by := range r.Expected {
		if by == name {
			all = append(all, id)
		}
	}
	slices.Sort(all)
	return all
}
