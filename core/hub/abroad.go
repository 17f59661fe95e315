package hub

import (
	"context"
	"maps"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// Who reads all tasks is told of those that other hubs open. What a hub was not told, for it was not
// up, or nobody read all tasks, it asks for.

// newestOwn are the places of the newest tasks that a hub owns, by line.
type newestOwn struct {
	Lines map[task.Line]uint64 `json:"lines"`
}

// tasksNewest tells a hub that comes up which tasks are not new.
func tasksNewest() news[newestOwn] {
	return news[newestOwn]{what: "task.newest", told: func(h *Hub, _ string, n newestOwn) { h.tasks.NoteLines(n.Lines) }}
}

// tellNewest tells a hub that comes up which tasks of this one are not new. Callers hold mu.
func (h *Hub) tellNewest(hub string) {
	if h.others.peers == nil {
		return
	}
	own := h.tasks.Lines()
	maps.DeleteFunc(own, func(l task.Line, _ uint64) bool { return l.Owner() != h.ownIndex })
	tasksNewest().tellThese(h, []string{hub}, newestOwn{own})
}

// unreadInquiry asks a hub for the tasks that it knows and that come after a position, and for those at
// the position itself: a hub that has such a task knows what came after it in its line, and so does
// the one that asks then, which may have started since. What a hub opens later it tells.
func unreadInquiry() inquiry[string, []core.TaskID] {
	return inquiry[string, []core.TaskID]{"tasks.unread", func(_ context.Context, h *Hub, _ core.Principal, from string) ([]core.TaskID, error) {
		p, _, err := parsePosition(from)
		if err != nil {
			return nil, err
		}
		h.mu.Lock() // so that the tasks which are not in it are told after it
		defer h.mu.Unlock()
		return append(p.latest(h.tasks), h.tasks.Unread(p.floor(), p.hasRead, task.CatalogTasks)...), nil
	}}
}

// askUnread asks the other hubs for the tasks after a position, so that this hub knows them. It
// reports whether all have answered.
func (h *Hub) askUnread(ctx context.Context, p *position) (all bool) {
	only := position{newest: p.newest, lines: p.lines}
	only.text = slices.Clone(p.text[:p.head()])
	answers, missing := unreadInquiry().askAll(ctx, h, componentPrincipal, string(only.text))
	for _, a := range answers {
		h.tasks.Learn(a.out...)
	}
	return len(missing) == 0
}

// componentPrincipal asks other hubs for what this one shows its readers by their rights.
var componentPrincipal = core.Principal{ID: "hub", Operator: true, Component: true}

// runningInquiry asks a hub for its tasks that have not ended, or whose end is still to be told.
func runningInquiry() inquiry[struct{}, []core.TaskID] {
	return inquiry[struct{}, []core.TaskID]{"tasks.running", func(_ context.Context, h *Hub, _ core.Principal, _ struct{}) ([]core.TaskID, error) {
		var all []core.TaskID
		for _, t := range h.tasks.InMemory() {
			if !t.IsMirror() && t.State() != task.Ended {
				all = append(all, t.ID())
			}
		}
		slices.Sort(all)
		return all, nil
	}}
}

// askRunning returns the tasks of other hubs that have not ended, in order.
func (h *Hub) askRunning(ctx context.Context) (all []core.TaskID) {
	answers, _ := runningInquiry().askAll(ctx, h, componentPrincipal, struct{}{})
	for _, a := range answers {
		all = append(all, a.out...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// began is what was known when a feed began.
type began struct {
	at     position
	coming map[core.TaskID]struct{} // tasks that were on their way here
}

// begunBy returns what is known at a position. Callers hold mu.
func (h *Hub) begunBy(p *position) *began {
	return &began{position{newest: p.newest, lines: slices.Clone(p.lines)}, maps.Clone(h.talk.expected)}
}

// catchUpRunning views the tasks that ran at other hubs when the feed began, one at a time.
func (f *Feed) catchUpRunning(ctx context.Context) (b FeedBatch, told bool, err error) {
	if was := f.began; was != nil {
		f.began, f.asks = nil, false
		for _, id := range f.sess.hub.askRunning(ctx) {
			_, coming := was.coming[id]
			_, open := f.at.find(id)
			if was.at.hasRead(id) && !coming && !open { // the others are told of
				f.at.set(id, core.Cursor{Epoch: 1})
				f.resumed = append(f.resumed, resumed{id, core.Cursor{}})
			}
		}
	}
	if len(f.resumed) == 0 {
		return b, false, nil
	}
	if b, told, err = f.resume(ctx, f.resumed[0]); err == nil {
		f.resumed = f.resumed[1:]
	}
	return b, told, err
}

// watchRunning has the session shown the tasks that run at other hubs. Callers hold mu.
func (h *Hub) watchRunning(s *Session) {
	if len(h.others.up) == 0 {
		return
	}
	h.talk.watching = append(h.talk.watching, s)
	select {
	case h.talk.watched <- struct{}{}:
	default: // they are looked for with the others that wait
	}
}

// showRunning shows the sessions that have begun to watch all tasks those that run at other hubs.
func (h *Hub) showRunning(ctx context.Context) {
	h.mu.Lock()
	waiting := h.talk.watching
	h.talk.watching = nil
	h.mu.Unlock()
	for _, id := range h.askRunning(ctx) {
		t, err := h.find(ctx, id)
		if err != nil {
			h.log.Info("a task that runs at another hub cannot be shown", "task", id, "error", err)
			continue
		}
		for _, s := range waiting {
			s.viewOnce(t, nil)
		}
	}
}
