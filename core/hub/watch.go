package hub

import (
	"context"
	"errors"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// Task finds a task, in memory or in the journal, that the principal may read. It
// returns an unknown_task or not_authorized Fault, or the error of the journal; it
// may wait for the journal.
func (h *Hub) Task(ctx context.Context, p core.Principal, id core.TaskID) (*Task, error) {
	h.mu.Lock()
	t := h.tasks[id]
	h.mu.Unlock()
	if t == nil {
		var err error
		if t, err = h.load(ctx, id); err != nil {
			return nil, err
		}
	}
	if t.from.ID == "" && !p.Operator {
		return nil, core.NewFault(core.CodeUnknownTask, "the beginning of task %s is no longer kept, and with it who asked", id)
	}
	if !h.rules.MayRead(p, t.from) {
		return nil, core.NewFault(core.CodeNotAuthorized, "task %s belongs to somebody else", id)
	}
	return t, nil
}

// load reads an ended task from the journal.
func (h *Hub) load(ctx context.Context, id core.TaskID) (*Task, error) {
	events, err := h.journal.Read(ctx, id, 0, 0)
	var gap *journal.GapError
	isGap := errors.As(err, &gap)
	switch {
	case isGap && len(events) > 0:
	case isGap || errors.Is(err, journal.ErrUnknown) || err == nil && len(events) == 0:
		return nil, core.NewFault(core.CodeUnknownTask, "no task %s is known here: it never was, or it is no longer kept", id)
	case err != nil:
		return nil, err
	}
	t := &Task{hub: h, id: id, log: logOf(events), loaded: true, state: Ended, epoch: events[len(events)-1].Epoch}
	if gap != nil {
		t.lost = events[0].Seq - 1
		for i := range events[1:] {
			t.holed = t.holed || events[i+1].Seq > events[i].End()+1
		}
	}
	for _, e := range events {
		switch b := e.Body.(type) {
		case core.Opened:
			t.from, t.request, t.chain.Hops = b.From, b.Request, b.Hops
		case core.Assigned:
			t.agent = b.Agent
		}
	}
	t.recorded = t.last()
	t.receipt = core.Receipt{Task: id, Stage: core.StageRecorded, Agent: t.agent, At: events[len(events)-1].At}
	return t, nil
}

// Watch makes the session a reader of a task that it found, from behind the
// cursor: what it missed comes first, then what happens. It returns an invalid
// Fault when the cursor is not one of this task.
func (s *Session) Watch(t *Task, from core.Cursor, tag any) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	next, gap := from.Seq, (*Gap)(nil)
	if from.Seq > 0 {
		if from.Epoch == 0 || from.Epoch > t.epoch {
			return core.NewFault(core.CodeInvalid, "cursor %s is not one of task %s: begin without a cursor", from, t.id)
		}
		if kept := t.lastOf(from.Epoch); from.Seq > kept {
			if from.Epoch == t.epoch {
				return core.NewFault(core.CodeInvalid, "cursor %s is ahead of task %s: begin without a cursor", from, t.id)
			}
			// What stood there was lost when the hub stopped.
			next, gap = kept, &Gap{From: kept + 1, To: from.Seq}
		}
	}
	t.leave(s)
	if t.state == Ended && next == t.last() && gap == nil && t.lost <= next {
		return nil // there is nothing to read, and nothing will come
	}
	r := t.attach(s, Viewer, tag, next)
	if gap != nil {
		r.gap = gap
		t.wake(r)
	}
	return nil
}

// AwaitEnd has Next return a batch of the task without events, as its requester's, once
// its end may be told. The session has opened the task, unwatched: who wants the outcome
// alone is not woken for what comes before it.
func (s *Session) AwaitEnd(t *Task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.attach(s, caller, nil, 0)
}

// reads reports whether a session reads the task already, but as its agent.
// Callers hold mu.
func (t *Task) reads(s *Session) bool {
	for r := t.readers; r != nil; r = r.after {
		if r.sess == s && (r.role == Requester || r.role == Viewer) {
			return true
		}
	}
	return false
}

// lastOf returns the last sequence number of an epoch. Callers hold mu.
func (t *Task) lastOf(epoch uint32) uint64 {
	last := t.lost
	for e := range t.log.all() {
		if e.Epoch > epoch {
			break
		}
		last = e.End()
	}
	return last
}

// seenToTheEnd forgets a task that a viewer has read to its end. Callers hold the
// mu of the task.
func (s *Session) seenToTheEnd(r *reader) {
	if r.role == Viewer {
		s.mu.Lock()
		delete(s.viewed, r.task)
		s.mu.Unlock()
	}
}

// Unwatch makes the session forget a task that it watches.
func (s *Session) Unwatch(t *Task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave(s)
}

// leave removes the session from the viewers. Callers hold mu.
func (t *Task) leave(s *Session) {
	s.mu.Lock()
	r := s.viewed[t]
	delete(s.viewed, t)
	s.mu.Unlock()
	if r != nil && !r.gone {
		t.drop(r)
	}
}

// WatchAll makes the session a reader of every task from now on, those that run, or
// whose end is still to be told, included. It is for operators.
func (s *Session) WatchAll() {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.closed {
		return
	}
	h.everyone[s] = struct{}{}
	for _, t := range h.tasks {
		t.mu.Lock()
		next := t.last()
		waits := t.endWaits()
		if waits {
			next--
		}
		if (waits || t.state != Ended) && !t.reads(s) {
			t.attach(s, Viewer, nil, next)
		}
		t.mu.Unlock()
	}
}
