package task

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// Status is what there is to know of a task beside what was said in it.
type Status struct {
	ID core.TaskID
	// State is queued, running, or how the task ended: done, failed or cancelled.
	State    string
	Agent    core.AgentID // "" before it was assigned
	From     core.Principal
	Hops     int
	OpenedAt time.Time // zero where the beginning is no longer kept
	Receipt  core.Receipt
	// Request is what was asked, without the history that the hub sent along.
	Request core.Request
}

// Status tells where the task stands, as far as that may be told: see
// [Limits.JournalLag].
func (t *Task) Status() Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := statusOf(t.id, t.request)
	s.State, s.Agent, s.From, s.Hops, s.Receipt = t.stateText(), t.agent, t.from, t.chain.Hops, t.receipt
	if first := t.log.At(0); first.Body.Kind() == core.KindOpened {
		s.OpenedAt = first.At
	}
	return s
}

// stateText is the State of its status. Callers hold mu.
func (t *Task) stateText() string {
	switch last := t.log.Last().Body.Kind(); {
	case t.endWaits():
		return Running.String()
	case last.Ends():
		return last.String()
	}
	return t.state.String()
}

func statusOf(id core.TaskID, r core.Request) Status {
	r.History = nil
	return Status{ID: id, Request: r}
}

// Filter says which tasks [Store.List] lists. The zero value of a field stands for
// any.
type Filter struct {
	State  string // as in Status
	Agent  core.AgentID
	From   string // the id of the principal that asked
	Thread core.ThreadID
	Before core.TaskID // only tasks that were opened before this one
	Limit  int         // how many at most; 0 is DefaultListed
}

// States are what a Filter may have as State.
var States = []string{
	Queued.String(), Running.String(), core.KindDone.String(), core.KindFailed.String(), core.KindCancelled.String(),
}

// The bounds of a list. Of tasks that are in the journal alone, a page looks at so many
// at most, and in all at so many bytes of requests.
const (
	DefaultListed = 50
	MostListed    = 500
	listReads     = 250
	listBytes     = 8 << 20
	// listHead is how many events of a task tell who asked and who answers: tasks go to
	// another agent only before anything was said.
	listHead = 64
)

// List lists tasks whose requester mayRead lets through, newest first: those that run and
// the latest that are known, in memory and in the journal, [CatalogTasks] in all. turns are
// the tasks of the thread of the filter, in order, if it has one. A page may have fewer
// than its limit, where many tasks had to be looked at; before is the id behind which
// the next one begins, and "" at the end. It may wait for the journal, whose error it
// returns.
func (s *Store) List(ctx context.Context, f Filter, turns []core.TaskID, mayRead func(core.Principal) bool) (all []Status, before core.TaskID, err error) {
	limit, reads, bytes := cmp.Or(min(f.Limit, MostListed), DefaultListed), 0, 0
	before = f.Before
	for {
		found := s.catalogued(f, turns, before)
		for _, c := range found {
			if len(all) == limit || reads == listReads || bytes > listBytes {
				return all, before, nil
			}
			before = c.id
			if f.State != "" && c.state() != f.State {
				continue
			}
			one, err := s.status(ctx, c)
			if c.task == nil {
				reads++
			}
			switch {
			case errors.Is(err, journal.ErrUnknown):
				continue
			case err != nil:
				return nil, "", err
			}
			bytes += one.Request.Size()
			if mayRead(one.From) && f.takes(one) {
				all = append(all, one)
			}
		}
		if len(found) == 0 {
			return all, "", nil
		}
	}
}

// takes reports whether the filter lets a task through.
func (f Filter) takes(s Status) bool {
	return (f.State == "" || s.State == f.State) && (f.Agent == "" || s.Agent == f.Agent) &&
		(f.From == "" || s.From.ID == f.From) && (f.Thread == "" || s.Request.Thread == f.Thread)
}

// status tells of a task in the catalog, out of the journal if it is no longer
// in memory. It returns journal.ErrUnknown when retention took it.
func (s *Store) status(ctx context.Context, c catalogued) (Status, error) {
	if c.task != nil {
		return c.task.Status(), nil
	}
	events, err := s.journal.Read(ctx, c.id, 0, listHead)
	var gap *journal.GapError
	if err != nil && !errors.As(err, &gap) {
		return Status{}, err
	}
	if len(events) == 0 {
		return Status{}, journal.ErrUnknown
	}
	one := statusOf(c.id, core.Request{})
	for _, e := range events {
		switch b := e.Body.(type) {
		case core.Opened:
			one = statusOf(c.id, b.Request)
			one.From, one.Hops, one.OpenedAt = b.From, b.Hops, e.At
		case core.Assigned:
			one.Agent = b.Agent
		}
	}
	one.State = c.end.String()
	one.Receipt = core.Receipt{Task: c.id, Stage: core.StageRecorded, Agent: one.Agent, At: time.Unix(0, c.at)}
	return one, nil
}

// CatalogTasks is how many tasks a hub can list: the latest.
const CatalogTasks = 1 << 16

// catalog knows the latest tasks in the order of their ids, and how those ended that
// are no longer in memory. Store.mu guards it.
type catalog struct{ tasks fifo.Queue[known] }

// known is a task in the catalog.
type known struct {
	id  core.TaskID
	end core.Kind // 0 while it is in memory
	at  int64     // when it ended, in Unix nanoseconds
}

// catalogued is a task as the catalog told of it.
type catalogued struct {
	known
	task *Task // nil if it is in the journal alone
}

// state is that of Status.
func (c catalogued) state() string {
	if c.task == nil {
		return c.end.String()
	}
	c.task.mu.Lock()
	defer c.task.mu.Unlock()
	return c.task.stateText()
}

// add notes a task; its id is greater than those before.
func (c *catalog) add(k known) {
	c.tasks.Push(k)
	if c.tasks.Len() > CatalogTasks {
		c.tasks.Pop()
	}
}

// find returns where a task stands, or would.
func (c *catalog) find(id core.TaskID) (all []known, i int, found bool) {
	all = c.tasks.Items()
	i, found = slices.BinarySearchFunc(all, id, func(k known, id core.TaskID) int { return cmp.Compare(k.id, id) })
	return all, i, found
}

// settle notes how a task ended that leaves memory.
func (c *catalog) settle(id core.TaskID, last core.Event) {
	if all, i, found := c.find(id); found {
		all[i].end, all[i].at = last.Body.Kind(), last.At.UnixNano()
	}
}

// catalogPage is how many tasks are looked at under the lock at once.
const catalogPage = 256

// catalogued returns the next tasks before one that may be what a filter wants, newest
// first; none at the end.
func (s *Store) catalogued(f Filter, turns []core.TaskID, before core.TaskID) (out []catalogued) {
	s.mu.Lock()
	defer s.mu.Unlock()
	take := func(k known) bool {
		if t := s.tasks[k.id]; t != nil || k.end != 0 {
			out = append(out, catalogued{k, t})
		}
		return len(out) < catalogPage
	}
	if f.Thread != "" {
		for i := len(turns) - 1; i >= 0; i-- {
			all, at, found := s.catalog.find(turns[i])
			if found && (before == "" || turns[i] < before) && !take(all[at]) {
				break
			}
		}
		return out
	}
	all, n, _ := s.catalog.find(before)
	if before == "" {
		n = len(all)
	}
	for i := n - 1; i >= 0 && take(all[i]); i-- {
	}
	return out
}
