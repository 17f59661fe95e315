package hub

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/task"
)

// The turns of a task are told to all hubs before its end is stored: told after, they would be lost
// with a hub that dies in between. If the hub dies before it has stored the end, the task ends
// otherwise, and the turns have to leave the thread again.

const (
	mostToldAnswers = 256         // of a hub that may not be stored yet
	toldAnswerAge   = time.Minute // from then on one is stored
)

// toldAnswer is a task of another hub of which this one was told the turns.
type toldAnswer struct {
	thread core.ThreadID
	task   core.TaskID
	at     time.Time
}

// toldAnswers are those of one hub.
type toldAnswers struct {
	latest []toldAnswer // by its present life
	doubts []toldAnswer // by lives that have ended: the journal says what is true
}

// add notes what a hub has told. It forgets what is stored by now.
func (a *toldAnswers) add(t toldAnswer) {
	n := max(0, len(a.latest)+1-mostToldAnswers)
	for n < len(a.latest) && t.at.Sub(a.latest[n].at) > toldAnswerAge {
		n++
	}
	a.latest = append(a.latest[n:], t)
}

// doubt has the journal asked for what a hub has told lately, since its life has ended. Callers hold
// mu.
func (h *Hub) doubt(hub string) {
	a := h.talk.told[hub]
	if a == nil || len(a.latest) == 0 {
		return
	}
	a.doubts, a.latest = append(a.doubts, a.latest...), nil
	h.settleDoubtsSoon()
}

// doubtsIn returns the tasks of a thread with turns that may have to leave it again: those of this
// hub, and of others that have told it of them.
func (h *Hub) doubtsIn(thread core.ThreadID, turns []core.Turn) (all []core.TaskID) {
	for _, turn := range turns {
		if t := h.tasks.Get(turn.Task); turn.Role == core.RoleAssistant && t != nil && !t.IsRecorded() {
			all = append(all, turn.Task)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.talk.told {
		for _, d := range slices.Concat(a.latest, a.doubts) {
			if d.thread == thread {
				all = append(all, d.task)
			}
		}
	}
	return all
}

// hearDoubts has the journal asked for tasks of which another hub has answered turns. Callers hold mu.
func (h *Hub) hearDoubts(hub string, thread core.ThreadID, tasks []core.TaskID) {
	for _, id := range tasks {
		owner, ok := h.ownerOf(task.OwnerOf(id))
		if !ok {
			owner = hub
		}
		if h.talk.told[owner] == nil {
			h.talk.told[owner] = &toldAnswers{}
		}
		a := h.talk.told[owner]
		a.doubts = append(slices.DeleteFunc(a.doubts, func(d toldAnswer) bool { return d.task == id }), toldAnswer{thread, id, time.Now()})
	}
	if len(tasks) > 0 {
		h.settleDoubtsSoon()
	}
}

// settleDoubtsSoon has the journal asked for what is in doubt.
func (h *Hub) settleDoubtsSoon() { fifo.Signal(h.talk.doubting) }

// settleAllDoubts asks the journal for what is in doubt whenever there is something, until ctx ends. It is
// apart from [Hub.settle] so that readers of a hub that is gone do not wait for it.
func (h *Hub) settleAllDoubts(ctx context.Context) {
	again := time.NewTimer(time.Hour)
	defer again.Stop()
	for {
		select {
		case <-h.talk.doubting:
		case <-again.C:
		case <-ctx.Done():
			return
		}
		h.mu.Lock()
		hubs := slices.Sorted(maps.Keys(h.talk.told))
		h.mu.Unlock()
		all := true
		for _, name := range hubs {
			all = h.settleDoubts(ctx, name) && all
		}
		if !all {
			again.Reset(settleAgain)
		}
	}
}

// settleDoubts takes turns out of their threads that tasks do not have by the journal. It reports
// whether the journal has said enough of all.
func (h *Hub) settleDoubts(ctx context.Context, hub string) (all bool) {
	h.mu.Lock()
	settled, gone := h.others.gone[hub]
	var doubts []toldAnswer
	if a := h.talk.told[hub]; a != nil && (settled || !gone) { // else it says so once that life is taken over
		doubts = slices.Clone(a.doubts)
	}
	h.mu.Unlock()
	open := false
	for _, d := range doubts {
		events, _, err := h.stored(ctx, d.task)
		var gap *journal.GapError
		unknown := errors.Is(err, journal.ErrUnknown)
		switch {
		case unknown && !gone && time.Since(d.at) < toldAnswerAge: // it may be the same life, over another connection
			open = true
			continue
		case !unknown && (err != nil && !errors.As(err, &gap) || !events[len(events)-1].Body.Kind().Ends()):
			open = true
			continue
		case unknown || events[len(events)-1].Body.Kind() != core.KindDone:
			h.Count("peer.retracted")
			h.threads.Drop(d.thread, d.task)
		}
		h.mu.Lock()
		a := h.talk.told[hub]
		a.doubts = slices.DeleteFunc(a.doubts, func(o toldAnswer) bool { return o == d })
		h.mu.Unlock()
	}
	return !open
}
