package hub

import (
	"context"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
)

// A hub that starts does not know the threads that began before. It reads or asks for one when somebody
// wants it: once, for from then on it is told. So it reads one that began as a single task, of
// which there are too many to read at a start.

const (
	mostWanted   = 256 // threads that tasks wait for
	wholeReads   = 4   // threads that are read or asked for at once, for tasks
	wholeTrials  = 3   // how often the others are asked before a task goes on without them
	rememberable = 64  // the latest tasks of a forgotten thread that are read, beside the first one
)

// gathering is what waits for threads. Hub.mu guards it.
type gathering struct {
	waiting  map[core.ThreadID][]waitingTurn // the tasks that wait until their thread is whole
	wanted   chan core.ThreadID              // the threads of those
	watching []*Session                      // those that are to be shown what runs elsewhere
	watched  chan struct{}                   // has a token when there are such
}

func newGathering() gathering {
	return gathering{waiting: map[core.ThreadID][]waitingTurn{}, wanted: make(chan core.ThreadID, mostWanted), watched: make(chan struct{}, 1)}
}

// knows is [Remote.Knows]; alone, the hub knows all. Callers hold mu.
func (h *Hub) knows(id core.ThreadID) bool { return h.remote == nil || h.remote.Knows(id) }

// gather is [Remote.Gather].
func (h *Hub) gather(ctx context.Context, id core.ThreadID) bool {
	return h.remote == nil || h.remote.Gather(ctx, id)
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
	h.threads.Add(id, TurnsOf(t)...)
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
	if !j.IsTurn() || h.remote == nil && !h.isForgotten(j.Thread()) {
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
	if h.knows(id) && !h.isForgotten(id) {
		return false, nil
	}
	if c := h.choose(j, false); c.now == nil && c.later == nil {
		return false, c.refusal()
	}
	all, asked := h.gathering.waiting[id]
	if !asked {
		select {
		case h.gathering.wanted <- id:
		default:
			return false, core.NewFault(core.CodeOverloaded, "more than %d conversations are being read or fetched from other hubs: ask again in a moment", mostWanted)
		}
	}
	h.gathering.waiting[id] = append(all, waitingTurn{j, private})
	return true, nil
}

// gatherWanted makes the threads whole that tasks wait for, one after the other, and looks for what
// those who begin to watch all tasks are to be shown, until ctx ends.
func (h *Hub) gatherWanted(ctx context.Context) {
	for {
		select {
		case id := <-h.gathering.wanted:
			h.gatherFor(ctx, id)
		case <-h.gathering.watched:
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
	all := h.gathering.waiting[id]
	delete(h.gathering.waiting, id)
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
