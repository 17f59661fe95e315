package hub

import (
	"context"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// Tasks lists tasks that the principal may read: see [task.Store.List].
func (h *Hub) Tasks(ctx context.Context, p core.Principal, f task.Filter) (all []task.Status, before core.TaskID, err error) {
	if f.Agent != "" {
		f.Agent = h.roster.Resolve(f.Agent)
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
