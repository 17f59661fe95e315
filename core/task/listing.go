package task

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// Sees says what somebody sees of the tasks that a principal asked of an agent: whether they may be read,
// and whether as they were said; else they are redacted.
type Sees func(from core.Principal, agent core.AgentID) (may, asSaid bool)

// List lists the tasks that somebody sees, newest first: those that run and the
// latest [CatalogTasks], in memory and in the journal. turns are the tasks of the filter's
// thread in order, if it has one. A page may have fewer tasks than its limit if it had to
// look at many; before is Filter.Before of the next page, and "" at the end. List may wait
// for the journal, whose error it returns. It leaves out the tasks in memory for which lists, if it
// is not nil, returns false. With a [Filter.Text] it finds what somebody sees of a task, and waits while
// another page is searched.
func (s *Store) List(ctx context.Context, f Filter, turns []core.TaskID, lists func(*Task) bool, sees Sees) (all []Status, before core.TaskID, err error) {
	l := &listing{store: s, filter: f, lists: lists, sees: sees, seen: map[parties]seen{}}
	if f.Text != "" {
		if l.search, err = s.beginSearch(ctx, f.Text); err != nil {
			return nil, "", err
		}
		defer s.endSearch()
	}
	l.began = time.Now()
	limit := f.Listed()
	before = f.Before
	for {
		found := s.catalogued(f, turns, before)
		for i, c := range found {
			if l.leavesOut(c) {
				before = c.id
				continue
			}
			switch {
			case c.isRead() && len(all) == limit:
				return all, all[limit-1].ID, nil
			case l.isOver(c):
				return all, before, nil
			}
			one, is, err := l.listed(ctx, found[i:], limit-len(all))
			switch {
			case err != nil:
				return nil, "", err
			case is && len(all) == limit: // nothing is told of tasks that are not selected
				return all, all[limit-1].ID, nil
			case is:
				l.bytes += one.Request.Size() + len(one.Found)
				if one.Fault != nil {
					l.bytes += len(one.Fault.Message)
				}
				all = append(all, one)
			}
			before = c.id
		}
		if len(found) == 0 {
			return all, "", nil
		}
	}
}

// A listing is what a call of [Store.List] knows while it makes a page.
type listing struct {
	store  *Store
	filter Filter
	lists  func(*Task) bool
	sees   Sees
	seen   map[parties]seen // what sees returned: most tasks have the same few

	ahead map[core.TaskID]described // what was read of tasks that come next
	reads int
	bytes int // of the requests on the page
	began time.Time

	search *search // nil where nothing is searched for
}

// listed returns the first of the tasks that come next as it stands on the page, and whether it is on it.
func (l *listing) listed(ctx context.Context, next []catalogued, room int) (one Status, is bool, err error) {
	one, err = l.status(ctx, next, room)
	switch {
	case errors.Is(err, journal.ErrUnknown):
		return one, false, nil
	case err != nil || !l.filter.matches(one) || !l.selects(partiesOf(one)):
		return one, false, err
	}
	one = l.shown(one)
	is, err = l.finds(ctx, &one)
	return one, is, err
}

// selects reports whether the page has a task of these parties.
func (l *listing) selects(w parties) bool {
	if l.filter.Agent != "" && w.of() != l.filter.Agent || l.filter.From != "" && w.from != l.filter.From {
		return false
	}
	return l.of(w).may
}

// seen is what [Sees] returned.
type seen struct{ may, asSaid bool }

// of returns what is seen of the tasks of these parties.
func (l *listing) of(w parties) seen {
	is, known := l.seen[w]
	if !known {
		is.may, is.asSaid = l.sees(core.Principal{ID: w.from}, w.of())
		l.seen[w] = is
	}
	return is
}

// shown returns a status as it stands on the page.
func (l *listing) shown(s Status) Status {
	if l.of(partiesOf(s)).asSaid {
		return s
	}
	return s.redacted(l.store.host.Redactor())
}

// leavesOut reports whether the catalog tells that a task is not on the page.
func (l *listing) leavesOut(c catalogued) bool {
	return c.task != nil && l.lists != nil && !l.lists(c.task) || l.filter.State != "" && c.state() != l.filter.State ||
		c.isRead() && (!l.selects(c.who.Value()) || l.filter.Cause != "" && c.cause != l.filter.Cause)
}

// isDue reports whether a task is yet to be read from the journal.
func (l *listing) isDue(c catalogued) bool {
	_, is := l.ahead[c.id]
	return c.task == nil && !is
}

// isOver reports whether the page ends before a task: it has cost enough.
func (l *listing) isOver(c catalogued) bool {
	return l.isDue(c) && (l.reads >= listReads || l.reads > 0 && time.Since(l.began) > listTime) || l.bytes > listBytes ||
		l.search.isOver(l.began)
}

// status describes the first of the tasks that come next. If it has to be read, so are others of them, as many as
// there is room for.
func (l *listing) status(ctx context.Context, next []catalogued, room int) (Status, error) {
	c := next[0]
	if c.task != nil {
		return c.task.Status(), nil
	}
	if l.isDue(c) {
		l.ahead = l.store.describe(ctx, next, max(1, min(listAtOnce, listReads-l.reads, room)), l.leavesOut)
		l.reads += len(l.ahead)
	}
	return l.ahead[c.id].status, l.ahead[c.id].err
}

// matches reports whether the filter selects a task.
func (f Filter) matches(s Status) bool {
	return (f.State == "" || s.State == f.State) && (f.Agent == "" || partiesOf(s).of() == f.Agent) &&
		(f.From == "" || s.From.ID == f.From) && (f.Thread == "" || s.Request.Thread == f.Thread) && (f.Cause == "" || s.Request.Cause == f.Cause)
}

// described is what the journal says of a task.
type described struct {
	status Status
	err    error
}

// describe reads the first n of the tasks that are only in the journal, all at once: each may take
// several round trips to it.
func (s *Store) describe(ctx context.Context, next []catalogued, n int, leavesOut func(catalogued) bool) map[core.TaskID]described {
	due := make([]catalogued, 0, n)
	for _, c := range next {
		if len(due) < n && c.task == nil && !leavesOut(c) {
			due = append(due, c)
		}
	}
	read := make([]described, len(due))
	var reading sync.WaitGroup
	for i, c := range due[1:] {
		reading.Go(func() { read[i+1].status, read[i+1].err = s.stored(ctx, c) })
	}
	read[0].status, read[0].err = s.stored(ctx, due[0])
	reading.Wait()
	all := make(map[core.TaskID]described, len(due))
	for i, c := range due {
		all[c.id] = read[i]
	}
	return all
}
