package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/rpc"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/thread"
)

// TaskPage is a page of a list of tasks.
type TaskPage struct {
	// Tasks are the tasks, newest first.
	Tasks []task.Status `json:"tasks"`
	// Before is [task.Filter.Before] of the next page; "" at the end.
	Before core.TaskID `json:"before,omitempty"`
	// Missing are the hubs of the cluster whose tasks are not in it.
	Missing []string `json:"missing,omitempty"`
}

// Tasks lists the tasks of all hubs that the principal may read: see [task.Store.List]. It may wait
// for the journal and the other hubs.
func (h *Hub) Tasks(ctx context.Context, p core.Principal, f task.Filter) (page TaskPage, err error) {
	if f.Agent != "" {
		f.Agent = h.roster.Resolve(f.Agent)
	}
	err = h.list(p, core.ListTasks, func() (err error) {
		page, err = h.tasksOfAll(ctx, p, f)
		return err
	})
	return page, err
}

func (h *Hub) tasksOfAll(ctx context.Context, p core.Principal, f task.Filter) (TaskPage, error) {
	q := tasksAsked{Filter: f}
	if h.remote == nil {
		return h.tasksHere(ctx, p, q)
	}
	up, missing, gone := h.node.Names()
	q.Asked = append(slices.Clone(up), h.node.Name())
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var answers []rpc.Answered[TaskPage]
	var asking sync.WaitGroup
	asking.Go(func() {
		var late []string
		answers, late = tasksMethod.AskThese(ctx, h, append(up, gone...), p, q)
		missing = append(missing, late...)
	})
	page, err := h.tasksHere(ctx, p, q) // meanwhile: each may read the journal for up to a second
	if err != nil {
		cancel()
	}
	asking.Wait()
	if err != nil {
		return TaskPage{}, err
	}
	pages := []TaskPage{page}
	for _, a := range answers {
		if f.Text != "" { // a hub of an older version has not searched
			a.Out.Tasks = slices.DeleteFunc(a.Out.Tasks, func(t task.Status) bool { return t.Found == "" })
		}
		pages = append(pages, a.Out)
	}
	slices.Sort(missing)
	page = mergePages(pages, f.Listed())
	page.Missing = slices.Compact(missing)
	return page, nil
}

// tasksAsked asks hubs for their tasks, each for its own.
type tasksAsked struct {
	Filter task.Filter `json:"filter"`
	// Asked are all hubs that are asked. What a hub has of the tasks of others, it lists too.
	Asked []string `json:"hubs"`
}

// TasksMethod is the name of the method that asks a hub for a page of its tasks. A [Remote] answers it in the place of
// hubs that are gone, by [Port.List].
const TasksMethod = "tasks"

const tasksMethod rpc.Method[tasksAsked, TaskPage] = TasksMethod

// List answers tasksMethod with the tasks of a store. It is called without the lock.
func (p Port) List(ctx context.Context, r rpc.Request, of *task.Store, threads *thread.Index) (json.RawMessage, error) {
	var q tasksAsked
	if err := json.Unmarshal(r.In, &q); err != nil {
		return nil, err
	}
	page, err := p.h.page(ctx, r.By, q.Filter, of, threads, nil)
	if err != nil {
		return nil, err
	}
	return json.Marshal(page)
}

// tasksHere lists the tasks of this hub.
func (h *Hub) tasksHere(ctx context.Context, p core.Principal, q tasksAsked) (TaskPage, error) {
	return h.page(ctx, p, q.Filter, h.tasks, h.index, func(t *task.Task) bool {
		if !t.IsRemote() {
			return true
		}
		hub := t.Owner()
		if hub == "" {
			hub, _ = h.node.At(task.OwnerOf(t.ID()))
		}
		return !slices.Contains(q.Asked, hub)
	})
}

// page lists tasks of a store that the principal may read.
func (h *Hub) page(ctx context.Context, p core.Principal, f task.Filter, s *task.Store, threads *thread.Index, lists func(*task.Task) bool) (page TaskPage, err error) {
	var turns []core.TaskID
	if f.Thread != "" {
		if task.IsID(string(f.Thread)) {
			turns = append(turns, core.TaskID(f.Thread)) // the thread may have begun as a single task
		}
		turns = append(turns, threads.Latest(f.Thread, task.CatalogTasks)...)
	}
	page.Tasks, page.Before, err = s.List(ctx, f, turns, lists, func(from core.Principal, agent core.AgentID) (may, asSaid bool) {
		return h.mayRead(p, h.ofWork(from, agent)), seesAsSaid(p, from.ID)
	})
	return page, err
}

// mergePages makes one page of those of several hubs. Each has all tasks of its hub down to its
// Before, so the page goes down to the newest of these: a hub that had to stop there has more.
func mergePages(pages []TaskPage, limit int) (all TaskPage) {
	for _, p := range pages {
		all.Tasks = append(all.Tasks, p.Tasks...)
		all.Before = max(all.Before, p.Before)
	}
	slices.SortStableFunc(all.Tasks, func(a, b task.Status) int { return cmp.Compare(b.ID, a.ID) })
	all.Tasks = slices.CompactFunc(all.Tasks, func(a, b task.Status) bool { return a.ID == b.ID }) // of a hub that is gone, listed where it is read
	end := len(all.Tasks)
	if all.Before != "" {
		end = slices.IndexFunc(all.Tasks, func(t task.Status) bool { return t.ID < all.Before })
		if end < 0 {
			end = len(all.Tasks)
		}
	}
	if end > limit {
		end = limit
		all.Before = all.Tasks[end-1].ID
	}
	all.Tasks = all.Tasks[:end]
	return all
}
