package hub

import (
	"context"
	"maps"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/rpc"
	"github.com/dragoman-hub/dragoman/core/task"
)

// Who reads all tasks is told of those that other hubs open. A hub asks the others for the tasks it missed while it
// was down, or while it had no such reader.

// newestOwn are the places of the newest tasks that a hub owns, by line.
type newestOwn struct {
	Lines map[task.Line]uint64 `json:"lines"`
}

// newestNews tells a hub that comes up which tasks are not new.
const newestNews rpc.News[newestOwn] = "task.newest"

// tellNewest tells a hub that comes up which tasks of this one are not new. Callers hold mu.
func (h *Hub) tellNewest(hub string) {
	own := h.tasks.Lines()
	maps.DeleteFunc(own, func(l task.Line, _ uint64) bool { return l.Owner() != h.node.Index() })
	newestNews.TellEach(h, []string{hub}, newestOwn{own})
}

// unreadMethod asks a hub for the tasks that it knows and that come after a position, and for those at
// the position itself: a hub that has such a task knows what came after it in its line, and so does
// the one that asks then, which may have started since. What a hub opens later it tells.
const unreadMethod rpc.Method[string, []core.TaskID] = "tasks.unread"

// unread is unreadMethod at this hub.
func (h *Hub) unread(_ context.Context, _ core.Principal, from string) ([]core.TaskID, error) {
	p, _, err := parsePosition(from)
	if err != nil {
		return nil, err
	}
	h.mu.Lock() // so that the tasks which are not in it are told after it
	defer h.mu.Unlock()
	return append(p.latest(h.tasks), h.tasks.Unread(p.floor(), p.hasRead, task.CatalogTasks)...), nil
}

// askUnread asks the other hubs for the tasks after a position, so that this hub knows them. It
// reports whether all have answered.
func (h *Hub) askUnread(ctx context.Context, p *position) (all bool) {
	only := position{newest: p.newest, lines: p.lines}
	only.text = slices.Clone(p.text[:p.head()])
	answers, missing := unreadMethod.AskAll(ctx, h, PartPrincipal, string(only.text))
	for _, a := range answers {
		h.tasks.Learn(a.Out...)
	}
	return len(missing) == 0
}

// runningMethod asks a hub for its tasks that have not ended, or whose end is still to be told.
const runningMethod rpc.Method[struct{}, []core.TaskID] = "tasks.running"

// runningHere is runningMethod at this hub.
func (h *Hub) runningHere(context.Context, core.Principal, struct{}) ([]core.TaskID, error) {
	var all []core.TaskID
	for _, t := range h.tasks.InMemory() {
		if !t.IsRemote() && t.State() != task.Ended {
			all = append(all, t.ID())
		}
	}
	slices.Sort(all)
	return all, nil
}

// askRunning returns the tasks of other hubs that have not ended, in order.
func (h *Hub) askRunning(ctx context.Context) (all []core.TaskID) {
	answers, _ := runningMethod.AskAll(ctx, h, PartPrincipal, struct{}{})
	for _, a := range answers {
		all = append(all, a.Out...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// began is what was known when a feed began.
type began struct {
	at     position
	coming map[core.TaskID]string // tasks that were on their way here
}

// begunBy returns what is known at a position. Callers hold mu.
func (h *Hub) begunBy(p *position) *began {
	return &began{position{newest: p.newest, lines: slices.Clone(p.lines)}, maps.Clone(h.expected)}
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
	if len(h.node.Up()) == 0 {
		return
	}
	h.gathering.watching = append(h.gathering.watching, s)
	select {
	case h.gathering.watched <- struct{}{}:
	default: // they are looked for with the others that wait
	}
}

// showRunning shows the sessions that have begun to watch all tasks those that run at other hubs.
func (h *Hub) showRunning(ctx context.Context) {
	h.mu.Lock()
	waiting := h.gathering.watching
	h.gathering.watching = nil
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
