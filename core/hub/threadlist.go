package hub

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// ThreadStatus describes a conversation by what a principal may read of it.
type ThreadStatus struct {
	ID core.ThreadID `json:"id"`
	// Title is the beginning of what was asked first; "" if that has no words.
	Title string `json:"title"`
	// State is that of its latest task, which began at OpenedAt: see [task.Status.State].
	State    string      `json:"state"`
	Task     core.TaskID `json:"task"`
	OpenedAt time.Time   `json:"opened_at,omitzero"`
	// Agents are those of its latest tasks, the latest first.
	Agents []core.AgentID `json:"agents"`
}

// ThreadFilter selects the conversations that [Hub.Threads] lists. The zero value of a field means any.
type ThreadFilter struct {
	State  string       // that of the latest task
	Agent  core.AgentID // one of ThreadStatus.Agents
	Before core.TaskID  // ThreadPage.Before of the page before
	Limit  int          // the maximum number; 0 means [task.DefaultListed]
}

// ThreadPage is a page of conversations, the one with the newest task first.
type ThreadPage struct {
	Threads []ThreadStatus `json:"threads"`
	// Before is [ThreadFilter.Before] of the next page; "" at the end.
	Before core.TaskID `json:"before,omitempty"`
	// Missing are the hubs of the cluster whose tasks are not in it.
	Missing []string `json:"missing,omitempty"`
}

// Bounds of a list of conversations.
const (
	threadTasks = 8           // the latest tasks of each of which the agents are told
	threadsTime = time.Second // after which a page has no more of them
	titleRunes  = 72
)

// Threads lists the conversations with tasks that the principal may read, among all that [Hub.Tasks] lists, and
// waits as that does. A page may have fewer than its limit. Notices are no part of a conversation.
func (h *Hub) Threads(ctx context.Context, p core.Principal, f ThreadFilter) (page ThreadPage, err error) {
	if f.Agent != "" {
		f.Agent = h.roster.Resolve(f.Agent)
	}
	err = h.list(p, core.ListTasks, func() error {
		l := &threadList{hub: h, by: p, filter: f, seen: map[core.ThreadID]bool{}, page: ThreadPage{Threads: []ThreadStatus{}, Before: f.Before}}
		err := l.fill(ctx)
		page = l.page
		return err
	})
	return page, err
}

// threadList makes a page of conversations.
type threadList struct {
	hub    *Hub
	by     core.Principal
	filter ThreadFilter
	seen   map[core.ThreadID]bool
	page   ThreadPage
}

// fill adds the conversations of one task after the other until the page is full or has cost enough.
func (l *threadList) fill(ctx context.Context) error {
	limit := task.Filter{Limit: l.filter.Limit}.Listed()
	for began := time.Now(); ; {
		tasks, err := l.tasks(ctx, task.Filter{Before: l.page.Before, Limit: task.MostListed})
		if err != nil {
			return err
		}
		for _, t := range tasks.Tasks {
			if len(l.seen) > 0 && time.Since(began) > threadsTime {
				return nil
			}
			if err := l.add(ctx, t); err != nil {
				return err
			}
			if l.page.Before = t.ID; len(l.page.Threads) > limit { // there is a next page
				l.page.Threads = l.page.Threads[:limit]
				l.page.Before = l.page.Threads[limit-1].Task
				return nil
			}
		}
		l.page.Before = tasks.Before
		if tasks.Before == "" || time.Since(began) > threadsTime {
			return nil
		}
	}
}

// tasks lists tasks, and notes which hubs are missing.
func (l *threadList) tasks(ctx context.Context, f task.Filter) (TaskPage, error) {
	tasks, err := l.hub.tasksOfAll(ctx, l.by, f)
	l.page.Missing = append(l.page.Missing, tasks.Missing...)
	slices.Sort(l.page.Missing)
	l.page.Missing = slices.Compact(l.page.Missing)
	return tasks, err
}

// add adds the conversation of a task if that is its latest one: else it belongs before it.
func (l *threadList) add(ctx context.Context, t task.Status) error {
	id := t.Request.Thread
	if t.Request.Notice != nil || id == "" || l.seen[id] {
		return nil
	}
	l.seen[id] = true
	if l.filter.State != "" && l.filter.State != t.State {
		return nil
	}
	latest, err := l.latest(ctx, t)
	if err != nil || len(latest) == 0 || latest[0].ID > t.ID {
		return err
	}
	s := ThreadStatus{ID: id, State: t.State, Task: t.ID, OpenedAt: t.OpenedAt, Agents: []core.AgentID{}}
	for _, turn := range latest {
		if turn.Agent != "" && !slices.Contains(s.Agents, turn.Agent) {
			s.Agents = append(s.Agents, turn.Agent)
		}
	}
	if l.filter.Agent != "" && !slices.Contains(s.Agents, l.filter.Agent) {
		return nil
	}
	first, err := l.first(ctx, id, latest)
	s.Title = titleOf(first.Request)
	l.page.Threads = append(l.page.Threads, s)
	return err
}

// latest returns the latest tasks of the conversation of a task, newest first.
func (l *threadList) latest(ctx context.Context, t task.Status) ([]task.Status, error) {
	if len(l.hub.index.Latest(t.Request.Thread, 1)) == 0 { // it is alone there
		return []task.Status{t}, nil
	}
	f := task.Filter{Thread: t.Request.Thread, Limit: threadTasks}
	for {
		found, err := l.tasks(ctx, f)
		if f.Before = found.Before; err != nil || len(found.Tasks) > 0 || f.Before == "" {
			return found.Tasks, err
		}
	}
}

// first returns the first task of a conversation that is listed, given the latest ones.
func (l *threadList) first(ctx context.Context, id core.ThreadID, latest []task.Status) (task.Status, error) {
	oldest := latest[len(latest)-1]
	if len(latest) < threadTasks {
		return oldest, nil
	}
	begun := core.TaskID("")
	if !task.IsID(string(id)) { // else it may have begun as a single task, of that id
		begun, _ = l.hub.index.Next(id, "")
	}
	second, _ := l.hub.index.Next(id, begun)
	if second == "" {
		return oldest, nil
	}
	found, err := l.tasks(ctx, task.Filter{Thread: id, Before: second, Limit: 1})
	if len(found.Tasks) > 0 {
		return found.Tasks[0], err
	}
	return oldest, err
}

// titleOf returns the beginning of what a request asks, in one line.
func titleOf(r core.Request) string {
	words := strings.Join(strings.Fields(r.Content), " ")
	if words == "" {
		words = string(r.Data)
	}
	if runes := []rune(words[:min(len(words), 4*titleRunes)]); len(runes) > titleRunes || len(words) > 4*titleRunes {
		words = strings.TrimSpace(string(runes[:min(len(runes), titleRunes)])) + "…"
	}
	return words
}
