package remote

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/redact"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/timer"
)

// TakeOver ends the tasks of another hub whose life this one has taken over: those that were running
// fail as unreachable and retryable, in a new epoch. It waits for the journal, whose error it
// returns; then it may be called again. Tasks of which nothing was said yet, and that any agent may
// have, go on here instead: the rest does that, which may wait for the part of this hub, too. It is
// called once.
func (r *Hubs) TakeOver(ctx context.Context, e journal.Estate) (rest func(context.Context), err error) {
	gone := core.NewFault(core.CodeUnreachable, "hub %s, which had the task, is gone: ask again", e.Life().Hub)
	var cut []journal.Record
	var open []journal.Head
	err = e.Heads(ctx, func(head journal.Head) bool {
		switch {
		case hasLeft(head, e.Life().Hub):
		case r.shared != nil && hasNoOutput(head):
			open = append(open, head)
		default:
			cut = append(cut, task.EndOf(head, gone))
		}
		return true
	})
	if err == nil && len(cut) > 0 {
		r.log.Warn("tasks of a hub that is gone were running", "hub", e.Life().Hub, "tasks", len(cut))
		err = e.Append(ctx, task.CloseOpen(ctx, cut, r.readStored)...)
	}
	if err != nil {
		return nil, err
	}
	r.Cut(cut)
	all, cut, err := r.transferPlans(ctx, open, e.Life().Hub, gone)
	if len(cut) > 0 { // also after an error: what has its end is not read again
		failed := e.Append(ctx, task.CloseOpen(ctx, cut, r.readStored)...)
		if failed == nil {
			r.Cut(cut)
		}
		err = cmp.Or(failed, err)
	}
	if err != nil {
		r.abort(all) // they are looked at again
	}
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return func(ctx context.Context) { r.claimTasks(ctx, e, all, gone) }, nil
}

// hasLeft reports whether a task was transferred from a hub to another one, which has its end.
func hasLeft(head journal.Head, hub string) bool {
	b, ok := head.Last.Body.(core.Retrying)
	return ok && b.Hub != "" && b.Hub != hub
}

// hasNoOutput reports whether it may be that no agent has said anything of a task. Its last event tells
// that of most.
func hasNoOutput(head journal.Head) bool {
	if head.Damaged || head.Last.Body == nil {
		return false
	}
	k := head.Last.Body.Kind()
	return !k.Output() && k != core.KindCancelRequested
}

// transferPlans is transferPlan for several tasks. It returns those that are to go on here, the ends of others, and
// the first error.
func (r *Hubs) transferPlans(ctx context.Context, heads []journal.Head, of string, gone *core.Fault) (all []*arrival, cut []journal.Record, err error) {
	found, ends, failed := make([]*arrival, len(heads)), make([]*core.Fault, len(heads)), make([]error, len(heads))
	task.EachAtOnce(heads, func(i int, head journal.Head) { found[i], ends[i], failed[i] = r.transferPlan(ctx, head, of, gone) })
	for i, head := range heads {
		switch {
		case failed[i] != nil:
		case found[i] != nil:
			all = append(all, found[i])
		default:
			cut = append(cut, task.EndOf(head, ends[i]))
		}
	}
	return all, cut, cmp.Or(failed...)
}

// transferPlan returns what of a task is to go on here or, if it has to end, with which Fault.
func (r *Hubs) transferPlan(ctx context.Context, head journal.Head, of string, gone *core.Fault) (_ *arrival, end *core.Fault, err error) {
	events, owner, err := r.stored(ctx, head.Task)
	var gap *journal.GapError
	if errors.Is(err, journal.ErrUnknown) || errors.As(err, &gap) || err == nil && owner != of {
		return nil, gone, nil // a copy that does not count, or whose beginning is lost
	}
	if err != nil {
		return nil, nil, err
	}
	opened, ok := events[0].Body.(core.Opened)
	if !ok || events[len(events)-1].End() != head.Last.End() {
		return nil, gone, nil // so it is
	}
	before := triesOf(events)
	if before.over || !r.mayHaveAnother(opened.Request, before) {
		return nil, gone, nil
	}
	opened = r.withSecrets(head.Task, opened)
	events[0].Body = opened
	if r.Redact != nil && r.Redact() != nil && redact.IsMarked(opened.Request) {
		return nil, core.NewFault(core.CodeUnreachable, "hub %s, which had the task, is gone, and no other hub has all of the request: what was redacted is not in the journal: ask again", of), nil
	}
	record := core.Retrying{ // nobody has to ask again
		Fault: core.NewFault(core.CodeUnreachable, "hub %s, which had the task, is gone", of), Hub: r.name, Attempt: before.attempt, Agent: before.agent,
	}
	events = append(events, core.Event{Seq: head.Last.End() + 1, Epoch: head.Last.Epoch + 1, At: time.Now(), Body: record})
	a := r.expectTransfer(head.Task, "", Transfer{Events: events, Stored: head.Last.End(), From: opened.From, Keep: true, Tried: before.tried})
	if a != nil && !r.hasAgentFor(a) {
		r.reject(a)
		a = nil // nobody is there
	}
	return a, gone, nil
}

// withSecrets returns the beginning of a task with what is not in the journal, if this hub has it.
func (r *Hubs) withSecrets(id core.TaskID, opened core.Opened) core.Opened {
	known := r.Tasks.Get(id)
	if known == nil || known.From().ID == "" {
		return opened
	}
	opened.Request = known.Request()
	if from := known.From(); from.Credential != nil { // else it was opened elsewhere, and the journal alone knows the rights
		opened.From = from
	}
	return opened
}

// tries are which agents had a task, by its events.
type tries struct {
	attempt   int
	agent     core.AgentID   // the one of the attempt
	tried     []core.AgentID // those before it
	transfers int            // to another hub
	over      bool           // an agent has begun to answer, or the task was to end
}

func triesOf(events []core.Event) (t tries) {
	for _, e := range events {
		switch b := e.Body.(type) {
		case core.Assigned:
			t.attempt, t.agent = b.Attempt, b.Agent
		case core.Retrying:
			if b.Hub != "" {
				t.transfers++
			} else {
				t.tried = append(t.tried, b.Agent)
			}
		}
		k := e.Body.Kind()
		t.over = t.over || k == core.KindCancelRequested || k.Output()
	}
	return t
}

// mayHaveAnother reports whether a request may go to another agent, of another hub.
func (r *Hubs) mayHaveAnother(q core.Request, before tries) bool {
	to := q.To.Reach()
	return to != core.ReachAgent && to != core.ReachHub && q.Intent != core.IntentNotify &&
		before.attempt <= r.Limits.Retries && before.transfers < hub.MostTransfers && time.Now().Before(q.Deadline)
}

// hasAgentFor reports whether some agent may have a task that is to go on here.
func (r *Hubs) hasAgentFor(a *arrival) bool {
	r.Lock()
	defer r.Unlock()
	return r.HasAgentFor(a.task, a.From, a.Tried, r.standFor(r.name))
}

// abort forgets tasks that do not come here now. Commands on them go to the hubs that have them.
func (r *Hubs) abort(all []*arrival) {
	for _, a := range all {
		r.passBuffered(a.task, r.reject(a))
	}
}

// claimTasks makes tasks of a hub that is gone those of this one. Those end that it cannot store by their
// deadline.
func (r *Hubs) claimTasks(ctx context.Context, e journal.Estate, all []*arrival, gone *core.Fault) {
	// The part of this hub may have lost its leader with the hub that is gone, and says so at once.
	persisted := func(a *arrival) bool {
		for {
			err := r.persist(ctx, a)
			if err == nil || errors.Is(err, errOtherCopy) || errors.Is(err, errTakenBack) || errors.Is(err, journal.ErrFenced) || ctx.Err() != nil || !time.Now().Before(a.task.Deadline()) {
				return err == nil
			}
			_ = timer.Sleep(ctx, settleAgain)
		}
	}
	var records []journal.Record
	for _, a := range all {
		end := journal.Record{Task: a.task.ID(), Event: a.record()}
		if !persisted(a) {
			r.reject(a)
			end.Event.Body = core.Failed{Fault: gone}
		}
		records = append(records, end)
	}
	for {
		err := e.Append(ctx, records...)
		if err == nil {
			break
		}
		if errors.Is(err, journal.ErrFenced) || ctx.Err() != nil {
			r.settleClaims(ctx, all)
			return
		}
		_ = timer.Sleep(ctx, settleAgain)
	}
	r.Cut(records)
	for i, a := range all {
		r.extend(a.task, []core.Event{records[i].Event})
	}
}

// settleClaims gives up the tasks that this hub was not the first to claim. A claim whose acknowledgement was
// lost may have been stored: the journal says which tasks have moved here.
func (r *Hubs) settleClaims(ctx context.Context, all []*arrival) {
	for _, a := range all {
		for {
			events, _, err := r.stored(ctx, a.task.ID())
			var gap *journal.GapError
			if err == nil || errors.As(err, &gap) {
				r.extend(a.task, events)
				break
			}
			if errors.Is(err, journal.ErrUnknown) || ctx.Err() != nil {
				break
			}
			_ = timer.Sleep(ctx, settleAgain)
		}
	}
	r.abort(slices.DeleteFunc(all, func(a *arrival) bool { return !a.task.IsRemote() }))
}
