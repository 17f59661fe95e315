package task

import (
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// Cancel, Inject and Decide of a remote task only say what the remote task knows to be refused: the command
// itself is for the owner.

// Cancel requests the end of the task. If its agent supports cancellation, the task ends
// when the agent says so or its grace period is over, else at once. It returns a conflict
// Fault if the task has ended.
func (t *Task) Cancel(by, reason string) error {
	t.mu.Lock()
	switch {
	case t.state == Ended:
		t.mu.Unlock()
		return core.NewFault(core.CodeConflict, "task %s has ended already", t.id)
	case t.cancelling || t.remote:
		t.mu.Unlock()
		return nil
	}
	t.append(core.CancelRequested{By: by, Reason: reason}, nil)
	if t.state == Running && t.worker.Features().Has(core.FeatureCancellation) {
		t.grace = time.Now().Add(t.store.limits.CancelGrace)
		t.rearm()
		t.mu.Unlock()
		return nil
	}
	t.append(core.Cancelled{Reason: reason}, nil) // under the same lock: a task that is to move may not do so in between
	worker := t.worker
	t.mu.Unlock()
	t.store.host.Ended(t, worker)
	return nil
}

// Inject pushes context to the agent while it works. It returns an unsupported Fault if the
// agent does not support it, a too_large Fault if it does not fit into the task, an overloaded one if there is
// no memory for it, and a conflict Fault if no agent works on the task.
func (t *Task) Inject(in core.Injected) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.state != Running:
		return core.NewFault(core.CodeConflict, "no agent works on task %s now: it is %s", t.id, t.state)
	case !t.remote && !t.worker.Features().Has(core.FeatureInjection):
		t.store.host.Count("refused.injection")
		return core.NewFault(core.CodeUnsupported, "agent %s takes no context while it works: wait for its answer and ask again", t.agent)
	}
	if err := t.hasRoom(in); err != nil || t.remote {
		return err
	}
	t.append(in, nil)
	return nil
}

// InjectFor pushes context of the hub if the worker has the task and supports it, and reports
// whether it did.
func (t *Task) InjectFor(w Worker, in core.Injected) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != Running || t.worker != w || !w.Features().Has(core.FeatureInjection) || t.hasRoom(in) != nil {
		return false
	}
	t.append(in, nil)
	return true
}

// hasRoom returns a too_large Fault for context that does not fit into the task, and an
// overloaded one if there is no memory for it. Callers hold mu.
func (t *Task) hasRoom(in core.Injected) error {
	switch l := t.store.limits; {
	case len(in.Content) > l.RequestBytes:
		return core.NewFault(core.CodeTooLarge, "the context has %d bytes, the limit is %d: send less, or say where it is", len(in.Content), l.RequestBytes)
	case t.bytes+len(in.Content) > l.TaskBytes:
		return core.NewFault(core.CodeTooLarge, "the task would have more than %d bytes: the operator can raise the limit of a task", l.TaskBytes)
	case len(in.Content) > minShare && l.Memory.IsFull():
		return t.store.full("small context goes through; send this again once some of what runs has ended")
	}
	return nil
}
