package task

import (
	"fmt"
	"slices"
	"sort"

	"github.com/dragoman-hub/dragoman/core"
)

// Role is the role of a reader of a task. The zero Role is unset.
type Role uint8

// The roles, with their names in JSON.
const (
	_          Role = iota
	Requester       // it asked
	Agent           // it answers
	Viewer          // it watches
	Subscriber      // it gets a notice by its topic; no reader of a task has this role
	Waiter          // it gets only the end
	Recorder        // it writes the journal, and gets an end before all others
)

var roles = [...]string{"", "requester", "agent", "viewer", "subscriber", "waiter", "recorder"}

// String returns the name of the role.
func (r Role) String() string { return roles[min(int(r), len(roles)-1)] }

// MarshalText implements [encoding.TextMarshaler].
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (r *Role) UnmarshalText(b []byte) error {
	i := slices.Index(roles[:], string(b))
	if i < 0 {
		return fmt.Errorf("unknown role %q", b)
	}
	*r = Role(i)
	return nil
}

// Inbox is notified when a reader has something to take. Values are compared with ==.
type Inbox interface {
	// Ready is called with the lock of the task held: it returns at once and does not call
	// the task. It is called once, and again only after Take. It reports false if the session
	// has ended, so that perhaps nobody takes what is new: see [Reader.Release].
	Ready(*Reader) bool
	// Principal returns who reads; the zero Principal is the hub itself.
	Principal() core.Principal
}

// Reader is one reader of one task's log, from Attach until it has read the end or is
// closed. It is safe for concurrent use.
type Reader struct {
	task      *Task
	inbox     Inbox
	tag       any
	next      uint64 // the last sequence number that it was given
	gap       *Gap
	before    *Reader // its neighbours in the list of the task
	after     *Reader
	veil      *veil // nil unless it reads the redacted form
	role      Role
	queued    bool // its inbox was notified
	held      bool // it waits for something to be recorded
	coalesces bool // text alone does not wake it
	left      bool // it is not in the list of the task
	gone      bool
}

// Gap is the sequence numbers From to To of a task whose events are no longer kept.
type Gap struct{ From, To uint64 }

// Piece is what a reader takes: events, a gap, or for a Waiter neither.
type Piece struct {
	Task *Task
	Role Role
	Tag  any
	// Events follow one another. They share memory with the log: read only.
	Events []core.Event
	Gap    *Gap
	// Over says that nothing more will come.
	Over bool
}

// Coalesce has text and thinking alone be no news to the reader: it gets them with the next event of another kind.
func (r *Reader) Coalesce() {
	r.task.mu.Lock()
	defer r.task.mu.Unlock()
	r.coalesces = true
}

// wakes reports whether an event of the kind is news to the reader by itself.
func (r *Reader) wakes(k core.Kind) bool {
	return r.wants(k) && !(r.coalesces && (k == core.KindText || k == core.KindThinking))
}

// wants reports whether the reader is given events of the kind.
func (r *Reader) wants(k core.Kind) bool {
	switch r.role {
	case Agent:
		return k.ForAgent() || k.Ends()
	case Waiter:
		return k.Ends()
	}
	return true
}

// waitsForRecord reports whether the reader may get an end only once it is recorded, if the
// journal is behind, and in a cluster anything.
func (r *Reader) waitsForRecord() bool { return r.role != Agent && r.role != Recorder }

// Attach adds a reader that continues after the sequence number next.
func (t *Task) Attach(in Inbox, role Role, tag any, next uint64) *Reader {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.attach(in, role, tag, next)
}

// attach is Attach. Callers hold mu.
func (t *Task) attach(in Inbox, role Role, tag any, next uint64) *Reader {
	t.count()
	r := t.unusedReader()
	*r = Reader{task: t, inbox: in, role: role, tag: tag, next: next}
	if t.hides {
		r.veil = &veil{}
	}
	if next < t.lost {
		r.gap, r.next = &Gap{From: next + 1, To: t.lost}, t.lost
	}
	if r.before = t.lastRead; r.before == nil {
		t.readers = r
	} else {
		r.before.after = r
	}
	t.lastRead = r
	if r.gap != nil {
		t.wake(r)
	} else if r.next < t.last() && (role != Waiter || t.state == Ended) {
		t.announce(r)
	}
	return r
}

// unusedReader returns memory for one more reader. Callers hold mu.
func (t *Task) unusedReader() *Reader {
	for i := range t.few {
		if t.few[i].task == nil {
			return &t.few[i]
		}
	}
	return new(Reader)
}

// Watch adds a viewer that continues after a cursor. It returns an invalid Fault if the
// cursor is not valid for this task, and no reader if nothing more will come. A remote task may be behind
// what its reader has read at another hub: then the reader waits until it is not. Watch returns an
// unreachable Fault if the cursor is of a later epoch, in which another hub may have gone on with the
// task: this one may have been cut off.
func (t *Task) Watch(in Inbox, from core.Cursor, tag any) (*Reader, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	next, gap := from.Seq, (*Gap)(nil)
	ahead := t.remote && t.state != Ended && from.Epoch >= t.epoch && from.Seq > t.last()
	if from.Seq > 0 && !ahead {
		var err error
		if next, gap, err = t.behind(from); err != nil {
			return nil, err
		}
	}
	if t.state == Ended && next == t.last() && gap == nil && t.lost <= next {
		return nil, nil
	}
	r := t.attach(in, Viewer, tag, next)
	if gap != nil {
		r.gap = gap
		t.wake(r)
	}
	return r, nil
}

// behind returns the event behind which a reader with a cursor goes on, and which events it has read that are
// no longer there: they were lost when a hub stopped. Callers hold mu.
func (t *Task) behind(from core.Cursor) (next uint64, gap *Gap, err error) {
	if from.Epoch > t.epoch && t.store.limits.Cluster && (t.state != Ended || t.endWaits()) {
		return 0, nil, core.NewFault(core.CodeUnreachable, "cursor %s is of a later epoch than this hub has of task %s: it may be cut off from the hub that has the task now: ask again in a moment", from, t.id)
	}
	if from.Epoch == 0 || from.Epoch > t.epoch {
		return 0, nil, core.NewFault(core.CodeInvalid, "cursor %s is not one of task %s: begin without a cursor", from, t.id)
	}
	kept := t.lastOf(from.Epoch)
	switch {
	case from.Seq <= kept:
		return from.Seq, nil, nil
	case from.Epoch == t.epoch:
		return 0, nil, core.NewFault(core.CodeInvalid, "cursor %s is ahead of task %s: begin without a cursor", from, t.id)
	}
	return kept, &Gap{From: kept + 1, To: from.Seq}, nil
}

// Follow adds a reader of what happens from now on, and of what waits to be recorded.
// It returns nil if the inbox reads the task already, or if nothing more will come.
func (t *Task) Follow(in Inbox, role Role) *Reader {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.readable()
	if n == t.log.Len() && t.state == Ended || t.isReadBy(in) {
		return nil
	}
	next := t.lost
	if n > 0 {
		next = t.log.At(n - 1).End()
	}
	return t.attach(in, role, nil, next)
}

// isReadBy reports whether an inbox gets what happens from now on, as the requester or a viewer. Callers
// hold mu.
func (t *Task) isReadBy(in Inbox) bool {
	for r := t.readers; r != nil; r = r.after {
		if r.inbox == in && (r.role == Requester || r.role == Viewer) {
			return true
		}
	}
	return false
}

// lastOf returns the last sequence number of an epoch. Callers hold mu.
func (t *Task) lastOf(epoch uint32) uint64 {
	last := t.lost
	for e := range t.log.All() {
		if e.Epoch > epoch {
			break
		}
		last = e.End()
	}
	return last
}

// Detach closes the reader of an inbox in each role. It is fast for roles other than Viewer,
// whose readers are first in the list.
func (t *Task) Detach(in Inbox, roles ...Role) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, role := range roles {
		t.detach(in, role)
	}
}

// detach is Detach. Callers hold mu.
func (t *Task) detach(in Inbox, role Role) {
	for r := t.readers; r != nil; r = r.after {
		if r.inbox == in && r.role == role {
			t.drop(r)
			return
		}
	}
}

// Cursor returns how far the reader has read.
func (r *Reader) Cursor() core.Cursor {
	r.task.mu.Lock()
	defer r.task.mu.Unlock()
	return core.Cursor{Epoch: r.task.epoch, Seq: r.next}
}

// Close removes the reader. It reports whether it was still there.
func (r *Reader) Close() bool {
	r.task.mu.Lock()
	defer r.task.mu.Unlock()
	if r.gone {
		return false
	}
	r.task.drop(r)
	return true
}

// Release lets the task go without the reader, whose session has ended: what it has not read
// can still be taken, and is not counted any more.
func (r *Reader) Release() {
	r.task.mu.Lock()
	defer r.task.mu.Unlock()
	r.task.unlink(r)
}

// drop removes a reader. Callers hold mu. Its memory may stay as long as the task, so it
// keeps no reference to its owner.
func (t *Task) drop(r *Reader) {
	t.unlink(r)
	r.gone, r.inbox, r.tag = true, nil, nil
}

// unlink takes a reader out of the list. Callers hold mu.
func (t *Task) unlink(r *Reader) {
	if r.left {
		return
	}
	r.left = true
	if r.before == nil {
		t.readers = r.after
	} else {
		r.before.after = r.after
	}
	if r.after == nil {
		t.lastRead = r.before
	} else {
		r.after.before = r.before
	}
	r.before, r.after = nil, nil
	t.uncount()
	t.condense()
}

// wake makes a reader ready. Callers hold mu.
func (t *Task) wake(r *Reader) {
	if r.queued {
		return
	}
	if r.queued = true; !r.inbox.Ready(r) {
		t.unlink(r)
	}
}

// announce makes a reader ready for what is new, now or once that is recorded. Callers hold mu.
func (t *Task) announce(r *Reader) {
	if r.waitsForRecord() && t.showsRecorded() && (r.role == Waiter && t.recorded < t.last() || r.role != Waiter && t.shown() <= r.next) {
		r.held = true
		return
	}
	t.wake(r)
}

// Take returns what is new for a reader that was ready; false if nothing is new.
func (r *Reader) Take() (Piece, bool) {
	if r.veil != nil {
		return r.veil.take(r)
	}
	return r.take()
}

// take is Take of what was said. Without anything new it returns who reads what, unless the reader is closed.
func (r *Reader) take() (Piece, bool) {
	t := r.task
	t.mu.Lock()
	defer t.mu.Unlock()
	r.queued = false
	if r.gone {
		return Piece{}, false
	}
	p := Piece{Task: t, Role: r.role, Tag: r.tag}
	if r.role == Waiter {
		r.held = t.endWaits()
		if p.Over = t.state == Ended && !r.held; p.Over {
			t.drop(r)
		}
		return p, p.Over
	}
	if r.gap != nil {
		p.Gap, r.gap = r.gap, nil
		p.Over = t.advance(r)
		return p, true
	}
	end := t.log.Len()
	if r.waitsForRecord() {
		end = t.readable()
		r.held = end < t.log.Len()
	}
	i := t.index(r.next)
	if i >= end {
		return p, false
	}
	p.Events = t.log.from(i)
	p.Events = p.Events[:min(len(p.Events), end-i)]
	given := r.next
	if t.holed {
		if first := p.Events[0].Seq; first > given+1 {
			p.Events, p.Gap, r.next = nil, &Gap{From: given + 1, To: first - 1}, first-1
			p.Over = t.advance(r)
			return p, true
		}
		for k := 1; k < len(p.Events); k++ {
			if p.Events[k].Seq > p.Events[k-1].End()+1 {
				p.Events = p.Events[:k:k]
			}
		}
	}
	r.next = p.Events[len(p.Events)-1].End()
	if rest, ok := p.Events[0].AfterSeq(given); ok && rest.Seq != p.Events[0].Seq {
		p.Events = append([]core.Event{rest}, p.Events[1:]...)
	}
	if r.role == Agent {
		p.Events = forAgent(p.Events, r.inbox.(Worker).Features())
	}
	p.Over = t.advance(r)
	return p, len(p.Events) > 0
}

// advance makes a reader ready again if there is more for it. It removes a reader to which
// nothing more will come, and reports that. Callers hold mu.
func (t *Task) advance(r *Reader) (over bool) {
	switch {
	case r.held && t.index(r.next) >= t.readable(): // the rest comes once it is recorded
	case r.next < t.last():
		t.wake(r)
	case t.state == Ended:
		t.drop(r)
		return true
	}
	return false
}

// index returns the index in the log of the first event after the sequence number next.
// Callers hold mu.
func (t *Task) index(next uint64) int {
	if !t.sparse {
		return int(next - t.lost) // sequence numbers have no gaps
	}
	return sort.Search(t.log.Len(), func(i int) bool { return t.log.At(i).End() > next })
}

// forAgent returns the events that are for an agent with these features. It copies none if
// they are consecutive.
func forAgent(events []core.Event, f core.Features) []core.Event {
	wanted := func(e core.Event) bool {
		switch k := e.Body.Kind(); {
		case k == core.KindCancelRequested && !f.Has(core.FeatureCancellation),
			k == core.KindInjected && !f.Has(core.FeatureInjection):
			return false
		default:
			return k.ForAgent() || k.Ends()
		}
	}
	from := slices.IndexFunc(events, wanted)
	if from < 0 {
		return nil
	}
	to := from + 1
	for to < len(events) && wanted(events[to]) {
		to++
	}
	out := events[from:to:to]
	for _, e := range events[to:] {
		if wanted(e) {
			out = append(out, e)
		}
	}
	return out
}
