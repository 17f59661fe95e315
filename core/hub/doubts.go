package hub

import (
	"context"
	"errors"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
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
	h.settleSoon()
}

// settleDoubts takes turns out of their threads that tasks do not have by the journal. It reports
// whether the journal has said enough of all.
func (h *Hub) settleDoubts(ctx context.Context, hub string) (all bool) {
	h.mu.Lock()
	settled, gone := h.others.gone[hub]
	var doubts []toldAnswer
	if a := h.talk.told[hub]; a != nil && (settled || !gone) { // else it says so once that life is taken over
		doubts, a.doubts = a.doubts, nil
	}
	h.mu.Unlock()
	var open []toldAnswer
	for _, d := range doubts {
		events, _, err := h.stored(ctx, d.task)
		var gap *journal.GapError
		switch {
		case errors.Is(err, journal.ErrUnknown):
			if !gone && time.Since(d.at) < toldAnswerAge { // it may be the same life, over another connection
				open = append(open, d)
				continue
			}
		case err != nil && !errors.As(err, &gap), !events[len(events)-1].Body.Kind().Ends():
			open = append(open, d)
			continue
		case events[len(events)-1].Body.Kind() == core.KindDone:
			continue
		}
		h.Count("peer.retracted")
		h.threads.Drop(d.thread, d.task)
	}
	if len(open) > 0 {
		h.mu.Lock()
		a := h.talk.told[hub]
		a.doubts = append(a.doubts, open...)
		h.mu.Unlock()
	}
	return len(open) == 0
}
