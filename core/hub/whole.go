package hub

import (
	"context"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
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

// knownThread is what a hub knows of a thread.
type knownThread struct {
	Tasks []core.TaskID `json:"tasks,omitempty"`
	Turns []toldTurn    `json:"turns,omitempty"`
	// Doubts are the tasks with turns whose end may not be stored.
	Doubts []core.TaskID `json:"doubts,omitempty"`
}

// threadInquiry asks a hub what it knows of a thread. It is for the hub, which shows of it what its
// readers may read.
func threadInquiry() inquiry[core.ThreadID, knownThread] {
	return inquiry[core.ThreadID, knownThread]{"thread", func(ctx context.Context, h *Hub, _ core.Principal, id core.ThreadID) (knownThread, error) {
		h.remember(ctx, id)
		turns, _ := h.threads.Turns(id, 1<<30)
		return knownThread{h.index.Latest(id, mostTurns), toldOf(turns), h.doubtsIn(id, turns)}, nil
	}}
}

// mostTurns is how many of the tasks of a thread a hub tells another one.
const mostTurns = 10_000

// isWhole reports whether this hub knows all of a thread that other hubs know. Callers hold mu.
func (h *Hub) isWhole(id core.ThreadID) bool {
	if len(h.others.up) == 0 {
		return true
	}
	joins, asked := h.talk.whole.Get(id)
	return asked && joins == h.talk.joins
}

// gather asks the other hubs for a thread, unless this one knows all of it. It reports whether all
// that are here have answered.
func (h *Hub) gather(ctx context.Context, id core.ThreadID) (whole bool) {
	if h.others.peers == nil {
		return true
	}
	h.mu.Lock()
	joins, known := h.talk.joins, h.isWhole(id)
	h.mu.Unlock()
	if known {
		return true
	}
	answers, missing := threadInquiry().askAll(ctx, h, componentPrincipal, id)
	for _, a := range answers {
		for _, t := range a.out.Tasks {
			h.index.Add(id, t, thread.Unknown)
		}
		h.threads.Add(id, turnsOf(a.out.Turns)...)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range answers {
		h.hearDoubts(a.hub, id, a.out.Doubts)
	}
	if slices.ContainsFunc(missing, func(name string) bool { return h.others.up[name] }) {
		return false
	}
	h.talk.whole.Put(id, joins)
	return true
}

// isForgotten reports whether a thread began as a task of this hub that only the journal has, and the turns of that are
// not here.
func (h *Hub) isForgotten(id core.ThreadID) bool {
	return h.tasks.IsStoredDone(core.TaskID(id)) && !h.threads.HasBeginning(id)
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
