package hub

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/task"
)

// This is the side of the hub to which a task moves: it stores a copy, and runs the task once the
// record of the move is stored where the task was before. Until then it has a mirror, which learns
// the record like any other event, also from the journal if the former owner is gone.

const (
	// mostArrivals bounds the tasks whose copies are to be stored.
	mostArrivals = 1024
	// parkTime is how long storing a copy may take.
	parkTime = 4 * time.Second
	// mostHeld bounds the commands on a task that wait until it is here.
	mostHeld = 64
)

// arrival is a task that moves to this hub.
type arrival struct {
	Handover
	from string // the hub that hands it over; "" for one that is gone
	came time.Time
	task *task.Task
	held []core.Call // commands on it
	// copied says that this hub may have stored a copy.
	copied atomic.Bool
}

func (a *arrival) move() Move { return Move{a.task.ID(), a.record().Seq} }

// Accept takes a task that the hub of the session hands over. It does not wait: [Peers.Took] tells
// what becomes of it.
func (s *Session) Accept(o Handover) {
	h, from := s.hub, s.identity.Hub
	if len(o.Events) < 2 {
		h.Count("peer.invalid")
		return
	}
	opened, ok := o.Events[0].Body.(core.Opened)
	moved, named := o.record().Body.(core.Retrying)
	if !ok || !named || moved.Hub != h.others.name {
		h.Count("peer.invalid")
		return
	}
	opened.From = o.From
	o.Events[0].Body = opened
	if a := h.await(opened.Task, from, o); a != nil {
		select {
		case h.others.arrivals <- a:
			return
		default:
			h.dismiss(a)
		}
	}
	_ = h.others.peers.Took(from, Move{opened.Task, o.record().Seq}, false)
}

// Kept says that a task does not move here although this hub has stored it: see [Peers.Hand].
func (h *Hub) Kept(by string, m Move) {
	h.mu.Lock()
	a := h.others.arriving[m.Task]
	h.mu.Unlock()
	if a != nil && a.from == by && a.move() == m {
		h.passHeld(a.task, h.dismiss(a))
	}
}

// await makes a mirror of a task that is to move here; nil if this hub takes none now, is the owner, or
// awaits the task from a later life.
func (h *Hub) await(id core.TaskID, from string, o Handover) *arrival {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.end.reason != "" || h.shared == nil {
		return nil
	}
	before := h.others.arriving[id]
	if before != nil && before.record().Epoch > o.record().Epoch {
		return nil // a life that does not know yet that another hub has taken it over
	}
	var followed string
	if t := h.tasks.Get(id); t != nil {
		followed, _ = h.owner(t)
	}
	a := &arrival{Handover: o, from: from, came: time.Now(), task: h.tasks.Mirror(id, o.Events[0])}
	if !a.task.IsMirror() {
		return nil
	}
	a.task.Extend(slices.DeleteFunc(slices.Clone(o.Events), func(e core.Event) bool { return e.End() > o.Stored }))
	if from != followed && from != "" {
		h.follow(from, a.task)
	}
	if before != nil {
		a.held, before.held = before.held, nil
	}
	h.others.arriving[id] = a
	return a
}

// dismiss forgets a task that does not come, or has come, and returns the commands that waited. A copy
// that was stored gets an end.
func (h *Hub) dismiss(a *arrival) []core.Call {
	h.mu.Lock()
	defer h.mu.Unlock()
	if id := a.task.ID(); h.others.arriving[id] == a {
		delete(h.others.arriving, id)
		h.noteIdle()
		if a.copied.Load() {
			select {
			case h.others.dismissed <- a:
			default: // the copy stays open until this life ends
			}
		}
	}
	held := a.held
	a.held = nil
	return held
}

// takeArrivals stores copies of the tasks that move here, and ends those that were dismissed, until ctx
// ends.
func (h *Hub) takeArrivals(ctx context.Context) {
	for {
		var a *arrival
		select {
		case a = <-h.others.arrivals:
		case a = <-h.others.dismissed:
			h.endCopy(ctx, a)
			continue
		case <-ctx.Done():
			return
		}
		err := errTooLate
		if time.Since(a.came) < handTime {
			err = h.park(ctx, a)
		}
		if err != nil && ctx.Err() == nil {
			h.log.Warn("a task that another hub hands over could not be stored", "task", a.task.ID(), "hub", a.from, "error", err)
			h.passHeld(a.task, h.dismiss(a))
		}
		_ = h.others.peers.Took(a.from, a.move(), err == nil)
	}
}

// park stores copies of tasks in the part of this hub.
func (h *Hub) park(ctx context.Context, all ...*arrival) error {
	ctx, cancel := context.WithTimeout(ctx, parkTime)
	defer cancel()
	var records []journal.Record
	for _, a := range all {
		rest, err := h.unstored(ctx, a)
		if err != nil {
			return err
		}
		records = append(records, rest...)
		a.copied.Store(true)
	}
	if len(records) == 0 {
		return nil
	}
	return h.journal.Append(ctx, records...)
}

// endCopy stores an end of the copy of a task that did not move here. The copy does not count, but a
// takeover of this hub reads its part from the first task without an end on. The error of the journal
// is dropped: then the copy ends with this life, as others do.
func (h *Hub) endCopy(ctx context.Context, a *arrival) {
	ctx, cancel := context.WithTimeout(ctx, parkTime)
	defer cancel()
	id := a.task.ID()
	kept, err := h.journal.Read(ctx, id, a.record().Seq-1, 0)
	if err != nil || len(kept) != 1 || !isSame(kept[0], a.record()) {
		return // nothing, or another course that may count
	}
	why := core.NewFault(core.CodeUnreachable, "the task was to move to hub %s, and did not: ask again", h.others.name)
	_ = h.journal.Append(ctx, endOf(journal.Head{Task: id, Last: kept[0]}, why))
}

var (
	errOtherCopy = errors.New("this hub has stored another course of the task, which did not come to count")
	errTooLate   = errors.New("others were stored before it for so long that the hub which has it waits no more")
)

// unstored returns what the part of this hub lacks of a task that moves here. It has the beginning if
// it has owned the task before, and another course of it if the task was to move here before and did
// not: that cannot be mended.
func (h *Hub) unstored(ctx context.Context, a *arrival) (all []journal.Record, err error) {
	id := a.task.ID()
	kept, err := h.journal.Read(ctx, id, 0, 0)
	var gap *journal.GapError
	if err != nil && !errors.Is(err, journal.ErrUnknown) && !errors.As(err, &gap) {
		return nil, err
	}
	last := core.Event{}
	if len(kept) > 0 {
		last = kept[len(kept)-1]
		i := slices.IndexFunc(a.Events, func(e core.Event) bool { return e.Seq == last.Seq })
		if i < 0 || !isSame(a.Events[i], last) {
			return nil, errOtherCopy
		}
	}
	for _, e := range a.Events {
		if e.Seq <= last.Seq {
			continue
		}
		if h.redact != nil {
			e = h.redact().Event(e)
		}
		all = append(all, journal.Record{Task: id, Event: e})
	}
	return all, nil
}

// isSame reports whether two events with one number are of one course of a task.
func isSame(a, b core.Event) bool {
	one, _ := a.Body.(core.Retrying)
	other, _ := b.Body.(core.Retrying)
	return a.Epoch == b.Epoch && a.Body.Kind() == b.Body.Kind() && a.At.Equal(b.At) && one.Hub == other.Hub
}

// arrive runs a task whose mirror has the record of its move here. It does nothing for any other, and
// gives one up that goes on elsewhere.
func (h *Hub) arrive(t *task.Task) {
	h.mu.Lock()
	a := h.others.arriving[t.ID()]
	if a == nil {
		h.mu.Unlock()
		return
	}
	record := a.record()
	if h.tasks.Arrive(t, record) {
		j, held := h.own(a)
		h.mu.Unlock()
		h.run(j, a, held)
		return
	}
	h.mu.Unlock()
	last := t.Last() // of an epoch before: it was said and not stored
	if t.HasEnded() || last.Epoch > record.Epoch || last.Epoch == record.Epoch && last.Seq >= record.Seq {
		h.passHeld(t, h.dismiss(a))
	}
}

// own makes a job of a task that has moved here, and returns the commands that have waited. Callers
// hold mu, since before the task was this hub's: it may end at once.
func (h *Hub) own(a *arrival) (j *job, held []core.Call) {
	t, from := a.task, a.From
	j = &job{Task: t, asker: &from}
	for _, id := range a.Tried {
		j.tried = append(j.tried, attempt{agent: id})
	}
	opened := h.mirrors[t.ID()]
	delete(h.mirrors, t.ID())
	if j.opener = opened; opened == nil {
		j.opener = h.standFor(cmp.Or(a.Opener, h.others.name))
	}
	h.jobs[t.ID()] = j
	h.recorder.Continue(t, a.record().Seq)
	if opened == nil {
		h.retain(j.opener, j, a.Keep)
	}
	h.came(t.ID()) // else it was shown here before
	delete(h.others.arriving, t.ID())
	h.Count("move.arrived")
	return j, a.held
}

// run gives a task that has moved here to an agent, and executes the commands that have waited.
func (h *Hub) run(j *job, a *arrival, held []core.Call) {
	why := core.NewFault(core.CodeUnreachable, "no agent took the task where it has moved: ask again")
	if b, ok := a.record().Body.(core.Retrying); ok && b.Fault != nil {
		why = b.Fault
	}
	if a.from == "" || h.route(j) != nil { // whoever handed it over has chosen this hub: it does not go back for a shorter queue
		h.moveOn(j, why)
	}
	if len(held) == 0 {
		return
	}
	h.mu.Lock()
	standIn := h.standFor(h.others.name)
	h.mu.Unlock()
	for _, c := range held {
		_ = standIn.Perform(c) // it may have ended
	}
}

// standFor returns the session that stands for another hub or, if that is not connected, one of the
// hub's own. Callers hold mu.
func (h *Hub) standFor(hub string) *Session {
	var latest *Session
	for s := range h.sessions {
		if hub != h.others.name && s.identity.Hub == hub && !s.closed && (latest == nil || s.number > latest.number) {
			latest = s
		}
	}
	if latest != nil {
		return latest
	}
	if h.others.standIn == nil {
		h.others.standIn = newSession(h, Identity{
			Principal: core.Principal{ID: core.PartPrefix + h.others.name, Operator: true, Component: true}, Keep: true, Checked: true, Hub: cmp.Or(h.others.name, "?"),
		})
	}
	return h.others.standIn
}

// hold keeps a command on a task that is on its way here, and reports whether it is. Callers hold mu.
func (h *Hub) hold(c core.Call, t *task.Task) (bool, error) {
	a := h.others.arriving[t.ID()]
	if a == nil {
		return false, nil
	}
	if len(a.held) >= mostHeld {
		return true, core.NewFault(core.CodeOverloaded, "task %s moves to another hub, and %d commands wait for it: ask again in a moment", t.ID(), mostHeld)
	}
	a.held = append(a.held, c)
	return true, nil
}

// passHeld passes commands on a task that has not come to its owner.
func (h *Hub) passHeld(t *task.Task, held []core.Call) {
	for _, c := range held {
		if !t.HasEnded() {
			_ = h.pass(c, t, "") // its owner may be gone, and its end comes with it
		}
	}
}
