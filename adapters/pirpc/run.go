package pirpc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pirpc/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/link"
)

// maxForeign bounds what is passed on of an event that the hub does not know, in bytes.
const maxForeign = 64 << 10

// run is one task at a process. The reader loop of the process handles its events; what the task
// is told comes from another goroutine.
type run struct {
	ctx     context.Context //nolint:containedctx // that of the task, for what its events cause
	opts    *Options
	turn    agent.Turn
	request core.Request
	proc    *process
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
	checking  bool // a get_state is under way
	over      chan struct{}
	isOver    bool
}

func newRun(ctx context.Context, opts *Options, t agent.Turn) *run {
	r := &run{
		ctx: ctx, opts: opts, turn: t, request: t.Request(), tools: map[string]*tool{}, injected: map[string]bool{},
		dialogs: map[string]*dialog{}, over: make(chan struct{}),
	}
	r.speech.say = func(text string) error { return t.Report(core.Text{Text: text}, nil) }
	r.speech.think = func(text string) error { return t.Report(core.Thinking{Text: text}, nil) }
	return r
}

// do gives the task to a process and waits for its end. usable reports whether the process can
// take another task of the thread.
func (r *run) do(p *process, earlier []core.Turn) (usable bool, err error) {
	r.proc = p
	p.begin(r)
	defer r.running.Wait()
	defer r.finish() // which wakes what waits
	defer p.begin(nil)
	text, images, folded := promptOf(r.request, earlier)
	if folded {
		r.opts.Count(countFolded)
	}
	for _, f := range r.request.Attachments {
		if leavesOut(f) {
			r.opts.Count(countFile)
		}
	}
	encode := func(id string) []byte { return wire.Say(id, wire.CommandPrompt, text, images) }
	if err := p.send(r.ctx, wire.CommandPrompt, encode, r.accepted, r.turn.Delivered); err != nil {
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

// knows returns the last task of the thread that the session has after the run; "" if the run
// changed nothing. A task that failed or was cancelled is no part of the thread.
func (r *run) knows() core.TaskID {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.done:
		return r.turn.Task()
	case r.answered:
		return latest(r.request.History)
	}
	return ""
}

// accepted handles the answer to the prompt.
func (r *run) accepted(a *wire.Response) {
	if !a.Success {
		r.fail(core.NewFault(core.CodeInvalid, "pi refused the prompt: %s", cmp.Or(a.Error, "it does not say why")))
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

// handle handles an event. It reports false once the run is over: then the event is not of it.
func (r *run) handle(e wire.Event) bool {
	r.handling.Lock()
	defer r.handling.Unlock()
	select {
	case <-r.over:
		return false
	default:
	}
	var err error
	switch e := e.(type) {
	case *wire.Update:
		r.message = true
		err = r.speech.update(e)
	case *wire.MessageStart:
		if e.Role == wire.RoleAssistant {
			if r.message = true; !r.coming {
				r.speech.reset()
			}
			r.coming = false
		}
	case *wire.MessageEnd:
		err = r.endMessage(e)
	case *wire.ToolStart:
		r.tools[e.ID] = &tool{name: e.Name, input: string(e.Args)}
		err = r.turn.Report(core.ToolCall{ID: e.ID, Name: e.Name, Input: cmp.Or(string(e.Args), "{}")}, nil)
	case *wire.ToolUpdate:
		if t := r.tools[e.ID]; t != nil {
			if news := t.news(e.Output); news != "" {
				err = r.turn.Report(core.ToolState{ID: e.ID, State: core.ToolRunning, Detail: news}, nil)
			}
		}
	case *wire.ToolEnd:
		err = r.endTool(e)
	case *wire.Dialog:
		if e.WantsReply() {
			r.ask(e)
		} else {
			err = r.foreign("extension_ui_request."+e.Method, e.Raw)
		}
	case *wire.Other:
		if !e.Known {
			r.opts.Count(countUnknown)
		}
		err = r.foreign(e.Type, e.Raw)
	default:
		err = r.advance(e)
	}
	if err != nil {
		r.stop(err)
	}
	return true
}

// endMessage handles the end of a message, whose text is authoritative.
func (r *run) endMessage(e *wire.MessageEnd) error {
	switch e.Role {
	case wire.RoleAssistant:
	case wire.RoleUser, wire.RoleTool:
		return nil // what was asked, and what the end of the tool said
	default:
		return r.foreign("message_end", e.Raw)
	}
	r.message, r.last = false, e.Message
	agrees, err := r.speech.end(e.Message)
	if err == nil && !agrees {
		r.opts.Count(countReplaced)
		err = r.foreign("message_end", e.Raw)
	}
	if e.Usage != (core.Usage{}) { // whatever was said with them, the tokens are spent
		err = cmp.Or(err, r.turn.Report(e.Usage, nil))
	}
	return err
}

func (r *run) endTool(e *wire.ToolEnd) error {
	delete(r.tools, e.ID)
	var foreign *core.Foreign
	if n := len(e.Details); n > 0 && n <= maxForeign {
		foreign = &core.Foreign{Dialect: Name, JSON: json.RawMessage(`{"details":` + string(e.Details) + `}`)}
	}
	return r.turn.Report(core.ToolResult{ID: e.ID, Output: e.Output, IsError: e.IsError}, foreign)
}

// foreign passes on an event without a neutral meaning.
func (r *run) foreign(name string, raw json.RawMessage) error {
	if len(raw) > maxForeign {
		r.opts.Count(countForeign)
		raw = nil
	}
	return r.turn.Report(core.ForeignFrame{Dialect: Name, Name: name}, &core.Foreign{Dialect: Name, JSON: raw})
}

// report reports what the task does not depend on.
func (r *run) report(b core.Body) {
	if err := r.turn.Report(b, nil); err != nil {
		r.stop(err)
	}
}

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
	if in.Source != "" {
		text = "[" + in.Source + "] " + text
	}
	_ = r.proc.send(r.ctx, name, func(id string) []byte { return wire.Say(id, name, text, nil) }, func(a *wire.Response) {
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
	if r.proc.ask(r.ctx, wire.CommandClearQueue, drop) == nil {
		_ = r.proc.ask(r.ctx, wire.CommandAbort, func(*wire.Response) { r.check() })
	}
}

func (r *run) cancelReason() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancelled == nil {
		return ""
	}
	return r.cancelled.Reason
}

// abortGrace is how long pi may take to stop after an error of ours. After a cancel the host has a
// grace of its own.
const abortGrace = 10 * time.Second

// stop ends the run for an error: pi is told to stop, and the task fails once it has.
func (r *run) stop(err error) {
	if errors.Is(err, errDiverged) {
		r.opts.Count(countDiverged)
		err = core.NewFault(core.CodeUnreachable, "the model broke off in the middle of its answer, and pi's retry answers differently: ask again")
	}
	if r.fail(err) {
		r.abort()
		r.later(abortGrace, func() {
			r.mu.Lock()
			r.deserted = true
			r.mu.Unlock()
			r.finish()
		})
	}
}

// fail sets why the task fails, and reports whether it is the first reason.
func (r *run) fail(err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure != nil {
		return false
	}
	r.failure = err
	return true
}

// lost handles the end of the process.
func (r *run) lost(reason link.Reason) {
	f := reason.Fault()
	if reason.Cause != link.ShuttingDown {
		f = core.NewFault(core.CodeUnreachable, "pi ended in the middle of the task: %s", reasonText(&reason)).Because(&reason)
	}
	r.mu.Lock()
	r.deserted = true
	r.mu.Unlock()
	r.fail(f)
	r.finish()
}

// lostLine handles the loss of a line: of which kind it was is unknown. The end of the message has
// its whole text, and the state whether the end of the run was lost.
func (r *run) lostLine() {
	r.handling.Lock()
	r.gap, r.rechecks = true, 0
	r.speech.hole = r.speech.hole || r.message
	r.handling.Unlock()
	r.check()
}

// later calls f after a time, unless the run is over before.
func (r *run) later(after time.Duration, f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isOver {
		return
	}
	r.running.Go(func() {
		t := time.NewTimer(after)
		defer t.Stop()
		select {
		case <-t.C:
			f()
		case <-r.over:
		}
	})
}
