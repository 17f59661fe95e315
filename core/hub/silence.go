package hub

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/roster"
	"github.com/dragoman-hub/dragoman/core/task"
)

// A hub that this one does not hear and that others hear is not gone: nobody takes its tasks over, and
// this may last. Until it is heard again it is asked for nothing, and what it says of its tasks is read
// in the journal.

// silenceTime is how long a hub may not be heard before it is treated as silent, and how long after one
// look at what it stores the next one is. Most are heard again by then, or gone.
const silenceTime = 3 * time.Second

// HubHeard says whether a hub is heard.
func (h *Hub) HubHeard(name string, heard bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, silent := h.others.silent[name]
	switch {
	case heard:
		delete(h.others.silent, name)
	case !silent:
		h.others.silent[name] = time.Now()
		h.settleSoon()
	}
}

// isSilent reports whether a hub has not been heard for a while. Callers hold mu.
func (h *Hub) isSilent(name string) bool {
	since, silent := h.others.silent[name]
	return silent && time.Since(since) >= silenceTime
}

// notHeard is why a hub is not asked.
func notHeard(name string) *core.Fault {
	return core.NewFault(core.CodeUnreachable, "hub %s is not heard by this hub: ask again in a moment, or ask at another hub", name)
}

// considerSilent is the rest of [choice.consider] for an agent of a hub that is not heard: it gets only
// what nobody else can have, and after a while nothing.
func (c *choice) considerSilent(e *roster.Entry) roster.Verdict {
	switch {
	case c.engine.isSilent(e.Hub):
		c.refused = notHeard(e.Hub)
	case c.anywhere && c.spareHub == "":
		c.spareHub, c.spare = e.Hub, e.ID
	}
	return roster.Continue
}

// settleSilent gives the mirrors of hubs that are silent what the journal says, and wakes those who wait
// for a task of them. It reports whether there are hubs that are not heard.
func (h *Hub) settleSilent(ctx context.Context) (more bool) {
	h.mu.Lock()
	var mirrors []*task.Task
	for _, name := range slices.Sorted(maps.Keys(h.others.silent)) {
		if !h.isSilent(name) {
			continue
		}
		mirrors = append(mirrors, h.mirrorsOf(name)...)
		for id, f := range h.others.fetched {
			if f.from == name {
				h.wake(id, notHeard(name))
			}
		}
	}
	more = len(h.others.silent) > 0
	h.mu.Unlock()
	for _, t := range mirrors {
		if ctx.Err() != nil {
			break
		}
		h.settleUnheard(ctx, t)
	}
	return more
}

// An opening that comes so late after its deadline is not adopted: see [Session.Adopt]. Who has sent it,
// and neither hears its owner nor finds the task in the journal, ends it after twice that time: by then
// the owner has either stored something of it or will never do so.
const latestOpening = 15 * time.Second

// settleUnheard gives a mirror what the journal says of its task. One that was opened here, and that its
// owner cannot have any more, ends.
func (h *Hub) settleUnheard(ctx context.Context, t *task.Task) {
	events, _, err := h.stored(ctx, t.ID())
	switch {
	case err == nil:
		h.extend(t, events)
	case !errors.Is(err, journal.ErrUnknown):
		h.log.Info("a task of a hub that is not heard could not be read yet", "task", t.ID(), "error", err)
	case t.Last().Body.Kind() == core.KindOpened && time.Since(t.Deadline()) > 2*latestOpening:
		h.endUnstored(t)
	}
}
