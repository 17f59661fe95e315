package task

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"
	"unique"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/lru"
	"github.com/dragoman-hub/dragoman/core/memory"
	"github.com/dragoman-hub/dragoman/core/redact"
)

// Status describes a task without its events, in a stable JSON form.
type Status struct {
	ID core.TaskID `json:"id"`
	// State is queued, running, or how the task ended: done, failed or cancelled.
	State    string         `json:"state"`
	Agent    core.AgentID   `json:"agent,omitempty"` // "" before it was assigned
	From     core.Principal `json:"from"`
	Hops     int            `json:"hops"`
	OpenedAt time.Time      `json:"opened_at,omitzero"` // zero if the first event is no longer kept
	EndedAt  time.Time      `json:"ended_at,omitzero"`  // zero while it runs
	Receipt  core.Receipt   `json:"receipt"`
	// Request is the request without its history.
	Request core.Request `json:"request"`
	// Fault says why a task failed; nil where its end is not read: see listEnd.
	Fault *core.Fault `json:"fault,omitempty"`
	// Found is the text around what [Filter.Text] has found; "" where nothing was searched for.
	Found string `json:"found,omitempty"`
}

// Status describes the task. It shows an end only once readers may see it: see
// [Host.JournalBehind].
func (t *Task) Status() Status { return t.status().redacted(t.redactor()) }

func (t *Task) status() Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := statusOf(t.id, t.request)
	s.State, s.Agent, s.From, s.Hops, s.Receipt = t.stateText(), t.agent, t.from, t.chain.Hops, t.progress()
	if first := t.log.At(0); first.Body.Kind() == core.KindOpened {
		s.OpenedAt = first.At
	}
	if last := t.log.Last(); last.Body.Kind().Ends() && !t.endWaits() {
		s.EndedAt, s.Fault = last.At, faultOf(last)
	}
	return s
}

// faultOf returns why a task failed that ended with an event; nil for any other event.
func faultOf(e core.Event) *core.Fault {
	if b, ok := e.Body.(core.Failed); ok {
		return b.Fault
	}
	return nil
}

// stateText returns Status.State. Callers hold mu.
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

// redacted returns the status without what is redacted.
func (s Status) redacted(r *redact.Redactor) Status {
	s.Request, s.Receipt, s.Fault = r.Request(s.Request), r.Receipt(s.Receipt), r.Fault(s.Fault)
	return s
}

// Filter selects the tasks that [Store.List] lists, in a stable JSON form. The zero value of a
// field means any.
type Filter struct {
	State  string        `json:"state,omitempty"` // as in Status
	Agent  core.AgentID  `json:"agent,omitempty"` // that of a task, or the one that was asked if none got it
	From   string        `json:"from,omitempty"`  // the id of the requester's principal
	Thread core.ThreadID `json:"thread,omitempty"`
	Cause  core.TaskID   `json:"cause,omitempty"`  // the task that its requester worked on
	Before core.TaskID   `json:"before,omitempty"` // only tasks that were opened before this one
	Limit  int           `json:"limit,omitempty"`  // the maximum number; 0 means DefaultListed
	Text   string        `json:"text,omitempty"`   // what the request, the answer or the name of the thread has, in any case
}

// Listed returns the maximum number of tasks.
func (f Filter) Listed() int { return cmp.Or(min(f.Limit, MostListed), DefaultListed) }

// States are the values of Filter.State.
var States = []string{
	Queued.String(), Running.String(), core.KindDone.String(), core.KindFailed.String(), core.KindCancelled.String(),
}

// Bounds of a list.
const (
	DefaultListed = 50
	MostListed    = 500
	listReads     = 250         // tasks that a page reads from the journal
	listAtOnce    = 16          // of these, how many are read at once
	listTime      = time.Second // after which it reads no more of them: other hubs wait for it
	listBytes     = 8 << 20     // requests on a page, and excerpts
	searchBytes   = 64 << 20    // what a search reads for a page
	// listHead is how many events of a task are read to find its requester and agent: a
	// task changes its agent only before any output.
	listHead = 64
	// listEnd is how many events after these are read of a task that failed, to find out why.
	listEnd = 4096
)

// stored describes a task that is only in the journal. It returns journal.ErrUnknown if retention
// dropped it.
func (s *Store) stored(ctx context.Context, c catalogued) (Status, error) {
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
	s.note(c.id, partiesOf(one), one.Request.Cause)
	if one.Fault, err = s.storedFault(ctx, c, events[len(events)-1]); err != nil {
		return Status{}, err
	}
	one.State, one.EndedAt = c.end.String(), time.Unix(0, c.at).UTC()
	one.Receipt = core.Receipt{Task: c.id, Stage: core.StageRecorded, Agent: one.Agent, At: time.Unix(0, c.at)}
	return one, nil
}

// storedFault returns why a task failed that is only in the journal, of which the first events were read up to last;
// nil for one that did not fail, and where too many events stand before its end.
func (s *Store) storedFault(ctx context.Context, c catalogued, last core.Event) (*core.Fault, error) {
	if f := faultOf(last); f != nil || c.end != core.KindFailed {
		return f, nil
	}
	events, err := s.journal.Read(ctx, c.id, last.End(), listEnd)
	var gap *journal.GapError
	switch {
	case err != nil && !errors.As(err, &gap):
		return nil, err
	case len(events) == 0:
		return nil, nil
	}
	return faultOf(events[len(events)-1]), nil
}

// CatalogTasks is how many tasks a hub can list. Beyond that the account with the most tasks loses its oldest
// ones. Tasks in memory stay.
const CatalogTasks = 1 << 16

// catalogSlack is how many tasks beyond its bound a catalog drops at once.
const catalogSlack = CatalogTasks / 128

// catalog has the latest tasks in the order of their ids, and the ends of those that are no
// longer in memory. Store.mu guards it.
type catalog struct {
	tasks  fifo.Queue[known]
	shares lru.Shares // by account; tasks of unknown accounts, such as those of other hubs, share one
	share  memory.Share
	kept   int             // how many were left when the bound last dropped some
	lost   core.TaskID     // the newest that it has dropped
	lostIn map[Line]uint64 // the place of that in each line; nil for a hub alone
}

// knownBytes is about what a task in the catalog takes: its entry, for which the queue may have
// room twice, its id, and that of its cause.
const knownBytes = 256

// known is a task in the catalog.
type known struct {
	id  core.TaskID
	of  *lru.Share // of the account that asked
	end core.Kind  // 0 while it is in memory
	at  int64      // when it ended, in Unix nanoseconds
	// What follows is known since the start, of a task that left memory or was read.
	who   unique.Handle[parties]
	cause core.TaskID
}

// isRead reports whether who and cause are known.
func (k known) isRead() bool { return k.who != unique.Handle[parties]{} }

// parties are those whom a task concerns.
type parties struct {
	from  string // the id of the requester
	agent core.AgentID
	to    core.AgentID // the agent that it was addressed to, if none got it
}

func partiesOf(s Status) parties {
	w := parties{from: s.From.ID, agent: s.Agent}
	if w.agent == "" {
		w.to = s.Request.To.Agent()
	}
	return w
}

// of returns the agent that the task counts as one of; "" if it was addressed to no agent by its id, and none got it.
func (w parties) of() core.AgentID { return cmp.Or(w.agent, w.to) }

// catalogued is a task that the catalog returned.
type catalogued struct {
	known
	task *Task // nil if it is only in the journal
}

// state returns Status.State.
func (c catalogued) state() string {
	if c.task == nil {
		return c.end.String()
	}
	c.task.mu.Lock()
	defer c.task.mu.Unlock()
	return c.task.stateText()
}

// add adds a task of an account, or replaces what is known of it. The ids of this hub rise; a task of another
// hub may come later than it was opened.
func (c *catalog) add(account string, k known) {
	k.of = c.shares.Add(account)
	all, i, found := c.tasks.Items(), 0, false
	if n := len(all); n > 0 && all[n-1].id >= k.id {
		if all, i, found = c.find(k.id); found {
			c.shares.Remove(all[i].of)
			all[i] = k
			return
		}
	}
	c.tasks.Push(k)
	c.share.Add(knownBytes)
	all = c.tasks.Items()
	for i = len(all) - 1; i > 0 && all[i-1].id > k.id; i-- {
		all[i-1], all[i] = all[i], all[i-1]
	}
}

// bound drops tasks that are not in memory beyond [CatalogTasks].
func (c *catalog) bound(inMemory map[core.TaskID]*Task) {
	before := c.tasks.Len()
	if before <= max(CatalogTasks, c.kept)+catalogSlack {
		return
	}
	c.tasks.DeleteFirst(c.shares.Cut(CatalogTasks), func(k known) bool {
		if !k.of.Loses() || inMemory[k.id] != nil {
			return false
		}
		c.shares.Remove(k.of)
		c.lost = max(c.lost, k.id)
		if c.lostIn != nil && IsID(string(k.id)) {
			l, place := LineOf(k.id)
			c.lostIn[l] = max(c.lostIn[l], place)
		}
		return true
	})
	c.kept = c.tasks.Len()
	c.share.Add((c.kept - before) * knownBytes)
}

// find returns the index at which a task is, or would be.
func (c *catalog) find(id core.TaskID) (all []known, i int, found bool) {
	all = c.tasks.Items()
	i, found = slices.BinarySearchFunc(all, id, func(k known, id core.TaskID) int { return cmp.Compare(k.id, id) })
	return all, i, found
}

// remove takes a task out.
func (c *catalog) remove(id core.TaskID) {
	all, i, found := c.find(id)
	if !found {
		return
	}
	c.shares.Remove(all[i].of)
	copy(all[1:i+1], all[:i])
	c.tasks.Pop()
	c.share.Add(-knownBytes)
}

// settle notes the end of a task that leaves memory, its parties and its cause.
func (c *catalog) settle(id core.TaskID, last core.Event, w parties, cause core.TaskID) {
	if all, i, found := c.find(id); found {
		all[i].end, all[i].at, all[i].who, all[i].cause = last.Body.Kind(), last.At.UnixNano(), unique.Make(w), cause
	}
}

// note notes the parties and the cause of a task that was read from the journal.
func (s *Store) note(id core.TaskID, w parties, cause core.TaskID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if all, i, found := s.catalog.find(id); found {
		all[i].who, all[i].cause = unique.Make(w), cause
	}
}

// Lists reports whether the store can list a task and all that came after it.
func (s *Store) Lists(id core.TaskID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _, found := s.catalog.find(id)
	return found && id >= s.catalog.lost
}

// IsStoredDone reports whether a task of this hub has ended as done and is in the journal alone, among those that the
// store can list.
func (s *Store) IsStoredDone(id core.TaskID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, i, found := s.catalog.find(id)
	return found && all[i].end == core.KindDone && s.tasks[id] == nil
}

// Lost returns the place in each line of the newest task that the store can list no more; nil for a hub alone.
func (s *Store) Lost() map[Line]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.catalog.lostIn)
}

// catalogPage is how many tasks are read in one hold of the lock.
const catalogPage = 256

// catalogued returns the next candidates for a filter before one, newest first; none at the
// end.
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
