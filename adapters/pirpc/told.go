package pirpc

import (
	"context"

	"github.com/dragoman-hub/dragoman/adapters/pirpc/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// listen takes what the task is told, until its ctx ends. A cancel before the prompt ends the
// wait for a process.
func (r *run) listen(stop context.CancelCauseFunc) {
	for {
		b, err := r.turn.Next(r.ctx)
		if err != nil {
			return
		}
		switch b := b.(type) {
		case core.ApprovalDecided:
			r.decided(b)
		case core.Injected:
			r.inject(b)
		case core.CancelRequested:
			r.mu.Lock()
			r.cancelled = &b
			begun := r.begun
			r.mu.Unlock()
			if !begun {
				stop(errCancelled)
				return
			}
			r.abort()
		}
	}
}

// inject steers pi. Before it has accepted the prompt there is nothing to steer.
func (r *run) inject(in core.Injected) {
	r.mu.Lock()
	if !r.answered {
		r.early = append(r.early, in)
		r.mu.Unlock()
		return
	}
	r.injected[in.ID] = true
	r.mu.Unlock()
	name := wire.CommandSteer
	if in.Priority == core.InjectionDeferred {
		name = wire.CommandFollowUp
	}
	text := in.Content
	if from := in.Attribution(); from != "" && from != r.turn.From().ID { // who asks needs no name
		text = "[" + from + "] " + text
	}
	_ = r.proc.send(r.telling(core.KindInjected), name, func(id string) []byte { return wire.Say(id, name, text, nil) }, func(a *wire.Response) {
		if r.takeInjected(in.ID) {
			r.report(core.InjectionAnswered{ID: in.ID, Accepted: a.Success, Reason: a.Error})
		}
	}, nil) // an error is that of the link, which ends the run too
}

func (r *run) takeInjected(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	waits := r.injected[id]
	delete(r.injected, id)
	return waits
}

// abort tells pi to stop. What it is queued to do is dropped before, for versions that would do
// it next; those that cannot say so in an answer that nobody awaits.
func (r *run) abort() {
	drop := func(*wire.Response) {}
	ctx := r.telling(0)
	if r.isCancelled() {
		ctx = r.telling(core.KindCancelRequested)
	}
	if r.proc.ask(ctx, wire.CommandClearQueue, drop) == nil {
		_ = r.proc.ask(ctx, wire.CommandAbort, func(*wire.Response) { r.check() })
	}
}

func (r *run) isCancelled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cancelled != nil
}

func (r *run) cancelReason() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancelled == nil {
		return ""
	}
	return r.cancelled.Reason
}
