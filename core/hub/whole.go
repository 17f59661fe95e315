package hub

import (
	"context"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/thread"
)

// A hub that comes up does not know the threads that began before. It asks for one when somebody
// wants it: once, for from then on it is told. So it reads one that began as a single task, of
// which there are too many to read at a start.

const (
	mostWanted   = 256 // threads that tasks wait for
	wholeReads   = 4   // threads that are read or asked for at once, for tasks
	wholeTrials  = 3   // how often the others are asked before a task goes on without them
	rememberable = 64  // the latest tasks of a forgotten thread that are read, beside the first one
)

// threadInquiry asks a hub for the latest tasks of a thread. It is for the hub, which shows of them what
// its readers may read.
func threadInquiry() inquiry[core.ThreadID, []core.TaskID] {
	return inquiry[core.ThreadID, []core.TaskID]{"thread", func(_ context.Context, h *Hub, _ core.Principal, id core.ThreadID) ([]core.TaskID, error) {
		return h.index.Latest(id, mostTurns), nil
	}}
}

// mostTurns is how many of the tasks of a thread a hub tells another one.
const mostTurns = 10_000

// turnsOfTasks are what a hub says of the turns of tasks.
type turnsOfTasks struct {
	Turns []toldTurn    `json:"turns,omitempty"`
	Open  []core.TaskID `json:"open,omitempty"` // those that have no end that may be shown
}

// turnsInquiry asks a hub for the turns of tasks that it owns, in order. Of more than a thread keeps it says
// the latest.
func turnsInquiry() inquiry[[]core.TaskID, turnsOfTasks] {
	return inquiry[[]core.TaskID, turnsOfTasks]{"thread.turns", func(ctx context.Context, h *Hub, _ core.Principal, all []core.TaskID) (turnsOfTasks, error) {
		var out turnsOfTasks
		for room := h.threadBytes(); len(all) > 0 && room >= 0; all = all[:len(all)-1] {
			id := all[len(all)-1]
			t, err := h.find(ctx, id)
			switch {
			case err != nil && !skips(err):
				return out, err
			case err != nil:
			case t.State() != task.Ended:
				out.Open = append(out.Open, id)
			case t.IsDone() && !t.IsNotice():
				turns := turnsOfTask(t)
				for _, turn := range turns {
					room -= turn.Size()
				}
				out.Turns = append(toldOf(turns), out.Turns...)
			}
		}
		return out, nil
	}}
}

// isWhole reports whether this hub knows all of a thread that other hubs know. Callers hold mu.
func (h *Hub) isWhole(id core.ThreadID) bool {
	if h.others.peers == nil {
		return true
	}
	c, known := h.talk.known.Get(id)
	return h.isAsked(c) && (!known || len(c.unread) == 0)
}

// isAsked reports whether all hubs that are up were asked for a conversation; nil for one that is not known.
// Callers hold mu.
func (h *Hub) isAsked(c *conversation) bool {
	return len(h.others.up) == 0 || c != nil && c.joins == h.talk.joins
}

// gather asks the other hubs for a thread, unless this one knows all of it. It reports whether all
// that are here have answered.
func (h *Hub) gather(ctx context.Context, id core.ThreadID) (whole bool) {
	if h.others.peers == nil {
		return true
	}
	h.mu.Lock()
	c, _ := h.talk.known.Get(id)
	joins, asked := h.talk.joins, h.isAsked(c)
	h.mu.Unlock()
	if !asked {
		asked = h.gatherTasks(ctx, id, joins)
	}
	return h.gatherTurns(ctx, id) && asked
}

// gatherTasks asks the other hubs for the tasks of a thread. It reports whether all that are up have answered.
func (h *Hub) gatherTasks(ctx context.Context, id core.ThreadID, joins uint64) bool {
	answers, missing := threadInquiry().askAll(ctx, h, componentPrincipal, id)
	for _, a := range answers {
		for _, t := range a.out {
			h.index.Add(id, t, thread.Unknown)
		}
	}
	all := h.index.Latest(id, rememberable)
	if task.IsID(string(id)) {
		all = append(all, core.TaskID(id)) // it began as a single task
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	c := &conversation{joins: joins}
	if slices.ContainsFunc(missing, func(name string) bool { return h.others.up[name] }) {
		c.joins = 0
	}
	for _, t := range all {
		if _, remote := h.ownerOf(task.OwnerOf(t)); remote && !h.threads.HasHad(id, t) {
			c.unread = append(c.unread, t)
		}
	}
	h.talk.known.Put(id, c)
	return c.joins != 0
}

// gatherTurns asks the owners of tasks of a thread for their turns, or reads them in the journal. It reports
// whether it has those of all that have ended.
func (h *Hub) gatherTurns(ctx context.Context, id core.ThreadID) (all bool) {
	h.mu.Lock()
	of := map[string][]core.TaskID{}
	c, _ := h.talk.known.Get(id)
	if c != nil {
		for _, t := range c.unread {
			owner, _ := h.ownerOf(task.OwnerOf(t))
			if !h.others.up[owner] || h.isSilent(owner) {
				owner = ""
			}
			of[owner] = append(of[owner], t)
		}
	}
	h.mu.Unlock()
	all = true
	for owner, tasks := range of {
		tasks = slices.DeleteFunc(tasks, func(t core.TaskID) bool { return h.threads.HasHad(id, t) })
		slices.Sort(tasks)
		said, err := h.turnsAt(ctx, owner, tasks)
		if err != nil {
			h.log.Info("the turns of a conversation could not be read", "thread", id, "hub", owner, "error", err)
			all = false
			said.Open = tasks
		}
		h.threads.Add(id, turnsOf(said.Turns)...)
		h.mu.Lock()
		c.unread = slices.DeleteFunc(c.unread, func(t core.TaskID) bool {
			return (slices.Contains(tasks, t) || h.threads.HasHad(id, t)) && !slices.Contains(said.Open, t)
		})
		h.mu.Unlock()
	}
	return all
}

// turnsAt returns the turns of tasks of a hub; "" for hubs that are gone, of which the journal knows.
func (h *Hub) turnsAt(ctx context.Context, owner string, tasks []core.TaskID) (said turnsOfTasks, err error) {
	if owner != "" && len(tasks) > 0 {
		return turnsInquiry().ask(ctx, h, owner, componentPrincipal, tasks)
	}
	for _, id := range tasks {
		t, _, err := h.findStored(ctx, id)
		switch {
		case err != nil && !skips(err):
			return said, err
		case err != nil:
		case !t.Last().Body.Kind().Ends():
			said.Open = append(said.Open, id)
		case t.IsDone() && !t.IsNotice():
			said.Turns = append(said.Turns, toldOf(turnsOfTask(t))...)
		}
	}
	return said, nil
}

// isForgotten reports whether a thread began as a task of this hub that only the journal has, and the turns of that are
// not here.
func (h *Hub) isForgotten(id core.ThreadID) bool {
	return h.tasks.IsStoredDone(core.TaskID(id)) && !h.threads.HasHad(id, core.TaskID(id))
}

// remember reads the turns of a forgotten thread from the journal, as far as this hub has them.
func (h *Hub) remember(ctx context.Context, id core.ThreadID) {
	if !h.isForgotten(id) || !h.rememberTask(ctx, id, core.TaskID(id)) {
		return
	}
	for _, of := range slices.Backward(h.index.Latest(id, rememberable)) {
		if h.threads.Lost(id) > 0 {
			return // those before it have no room
		}
		h.rememberTask(ctx, id, of)
	}
}

// rememberTask adds the turns of a task to its thread. It reports whether they are there.
func (h *Hub) rememberTask(ctx context.Context, id core.ThreadID, of core.TaskID) bool {
	t, err := h.findHere(ctx, of)
	if err != nil && !skips(err) {
		h.log.Warn("reading a conversation: agents may not get all of it", "thread", id, "task", of, "error", err)
	}
	if err != nil || !t.IsDone() || t.IsNotice() || t.Thread() != id {
		return false
	}
	h.threads.Add(id, turnsOfTask(t)...)
	return true
}

// waitingTurn is a task that waits until its thread is whole.
type waitingTurn struct {
	job     *job
	private bool
}

// begin gives a task to an agent, or has that done once the thread of the task is here: the agent
// gets all of the conversation. It does not wait for that.
func (h *Hub) begin(j *job, private bool) error {
	if !j.IsTurn() || h.others.peers == nil && !h.isForgotten(j.Thread()) {
		return h.deliver(j, private)
	}
	waits, err := h.waitForThread(j, private)
	if waits || err != nil {
		return err
	}
	return h.deliver(j, private)
}

func (h *Hub) waitForThread(j *job, private bool) (waits bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := j.Thread()
	if h.isWhole(id) && !h.isForgotten(id) {
		return false, nil
	}
	if c := h.choose(j, false); c.now == nil && c.later == nil {
		return false, c.refusal()
	}
	all, asked := h.talk.waiting[id]
	if !asked {
		select {
		case h.talk.wanted <- id:
		default:
			return false, core.NewFault(core.CodeOverloaded, "more than %d conversations are being read or fetched from other hubs: ask again in a moment", mostWanted)
		}
	}
	h.talk.waiting[id] = append(all, waitingTurn{j, private})
	return true, nil
}

// gatherWanted makes the threads whole that tasks wait for, one after the other, and looks for what
// those who begin to watch all tasks are to be shown, until ctx ends.
func (h *Hub) gatherWanted(ctx context.Context) {
	for {
		select {
		case id := <-h.talk.wanted:
			h.gatherFor(ctx, id)
		case <-h.talk.watched:
			h.showRunning(ctx)
		case <-ctx.Done():
			return
		}
	}
}

func (h *Hub) gatherFor(ctx context.Context, id core.ThreadID) {
	h.remember(ctx, id)
	whole := false
	for range wholeTrials {
		if whole = h.gather(ctx, id); whole || ctx.Err() != nil {
			break
		}
	}
	h.mu.Lock()
	all := h.talk.waiting[id]
	delete(h.talk.waiting, id)
	h.mu.Unlock()
	if ctx.Err() != nil {
		return // they end with the hub
	}
	if !whole {
		h.Count("thread.incomplete")
		h.log.Warn("a hub does not answer: agents may not get all of a conversation", "thread", id)
	}
	for _, w := range all {
		if err := h.deliver(w.job, w.private); err != nil && h.reroute(w.job, core.AsFault(err)) != nil {
			h.refuse(w.job, err)
		}
	}
}
