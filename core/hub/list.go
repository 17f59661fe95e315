package hub

import (
	"context"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// AgentPage returns the first n agents behind an id, by id, that keep lets through, and
// how many more there are behind those.
func (h *Hub) AgentPage(after core.AgentID, n int, keep func(core.Card) bool) (page []AgentStatus, more int) {
	entries, more := h.roster.Page(after, n, keep)
	return h.status(entries), more
}

// Tasks lists tasks that the principal may read: see [task.Store.List].
func (h *Hub) Tasks(ctx context.Context, p core.Principal, f task.Filter) (all []task.Status, before core.TaskID, err error) {
	if f.Agent != "" {
		h.mu.Lock()
		f.Agent = h.resolve(f.Agent)
		h.mu.Unlock()
	}
	var turns []core.TaskID
	if f.Thread != "" {
		if task.IsID(string(f.Thread)) {
			turns = append(turns, core.TaskID(f.Thread)) // it may have begun as a task on its own
		}
		turns = append(turns, h.index.Latest(f.Thread, task.CatalogTasks)...)
	}
	err = h.list(p, core.ListTasks, func() (err error) {
		all, before, err = h.tasks.List(ctx, f, turns, func(from core.Principal) bool { return h.mayRead(p, from) })
		return err
	})
	return all, before, err
}
