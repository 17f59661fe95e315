package pirpc

import (
	"cmp"
	"context"
	"sync"

	"github.com/dragoman-hub/dragoman/adapters/pirpc/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/frame"
)

// run is one task at a process. The reader loop of the process handles its events; what the task
// is told comes from another goroutine.
type run struct {
	ctx     context.Context //nolint:containedctx // that of the task, for what its events cause
	opts    *Options
	turn    agent.Turn
	request core.Request
	proc    *process
	frames  *frame.Turn    // of the task at proc; nil keeps none
	framed  agent.Turn     // turn, which tells the frames what is reported
	running sync.WaitGroup // dialogs, and what is due later

	// handling is held by the reader loop while it handles an event, and guards what follows.
	handling sync.Mutex
	speech   speech
	tools    map[string]*tool
	message  bool // within a message of the assistant
	open     bool // within agent_start and agent_end
	coming   bool // pi said that it begins another run: a retry, or after a compaction
	settles  bool // the process says when it has settled
	gap      bool // a line was lost in the run
	rechecks int
	last     wire.Message // of the assistant, once it has ended

	mu        sync.Mutex
	begun     bool // the process has the prompt
	answered  bool // and has accepted it
	early     []core.Injected
	injected  map[string]bool // those that wait for their answer
	dialogs   map[string]*dialog
	cancelled *core.CancelRequested
	failure   error
	done      bool // the answer is part of the thread
	deserted  bool // pi was told to stop and did not: the process is of no use
	checking  bool // a get_state is under way, or due
	checks    again
	aborts    again // of a run that pi begins although the task was cancelled
	over      chan struct{}
	isOver    bool
}

func newRun(ctx context.Context, opts *Options, t agent.Turn) *run {
	r := &run{
		ctx: ctx, opts: opts, turn: t, framed: t, request: t.Request(), tools: map[string]*tool{}, injected: map[string]bool{},
		dialogs: map[string]*dialog{}, over: make(chan struct{}), checks: newAgain(), aborts: newAgain(),
	}
	r.speech.say = func(text string) error { return r.framed.Report(core.Text{Text: text}, nil) }
	r.speech.think = func(text string) error { return r.framed.Report(core.Thinking{Text: text}, nil) }
	return r
}

// do gives the task to a process and waits for its end. usable reports whether the process can
// take another task of the thread.
func (r *run) do(p *process, earlier []core.Turn) (usable bool, err error) {
	r.proc, r.frames = p, p.frames.Turn(r.turn.Task(), r.request.History)
	r.framed = agent.Framed(r.turn, r.frames)
	p.begin(r)
	defer r.running.Wait()
	defer r.finish() // which wakes what waits
	defer p.begin(nil)
	request := r.request.HandedWith(earlier)
	text, images, folded := promptOf(request, earlier)
	if folded {
		r.opts.Count(countFolded)
	}
	for _, f := range request.Attachments {
		if leavesOut(f) {
			r.opts.Count(countFile)
		}
	}
	encode := func(id string) []byte { return wire.Say(id, wire.CommandPrompt, text, images) }
	if err := p.send(r.telling(core.KindAssigned), wire.CommandPrompt, encode, r.accepted, r.turn.Delivered); err != nil {
		return false, asUnreachable(r.ctx, err)
	}
	r.begin()
	select {
	case <-r.over:
	case <-r.ctx.Done(): // nobody waits for the task any more, and pi still works on it
		return false, context.Cause(r.ctx)
	}
	return r.end()
}

// telling returns a context with which pi is told of an event of the task, or with a zero kind of
// something else.
func (r *run) telling(kind core.Kind) context.Context { return r.frames.Telling(r.ctx, kind) }

// learn notes which turns of the thread the session has after the run. A task that failed or was
// cancelled is no part of the thread.
func (r *run) learn(known *agent.Known) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.done:
		known.Add(r.request.History, r.turn.Task())
	case r.answered:
		known.Add(r.request.History, "")
	}
}

// begin says that the process has the prompt.
func (r *run) begin() {
	r.mu.Lock()
	r.begun = true
	cancelled := r.cancelled != nil
	r.mu.Unlock()
	if cancelled {
		r.abort()
	}
}

// accepted handles the answer to the prompt.
func (r *run) accepted(a *wire.Response) {
	if !a.Success {
		// Not the request is at fault: pi has no model or no key, or is at other work.
		r.frames.Reported(core.KindFailed, false) // by the host
		r.fail(core.NewFault(core.CodeInternal, "pi refused the prompt: %s", cmp.Or(a.Error, "it does not say why")))
		r.finish()
		return
	}
	r.report(core.Accepted{})
	r.mu.Lock()
	r.answered = true
	early, cancelled := r.early, r.cancelled != nil
	r.early = nil
	r.mu.Unlock()
	for _, in := range early {
		r.inject(in)
	}
	if cancelled {
		r.abort() // the first may have come before pi had begun
	}
	if a.Disposition == "" || a.Disposition == wire.DispositionHandled {
		r.check() // an extension may have consumed it, and then no event follows
	}
}
