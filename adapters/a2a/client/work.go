package client

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/timer"
)

// work is one task at the remote.
type work struct {
	agent  *Agent
	remote *remote
	turn   agent.Turn
	// beside is turn for what is said beside the stream, whose frames are not those of Work.
	beside agent.Turn
	aside  *frame.Turn // those of beside; nil keeps none
	told   told
	// stop ends the work early; its cause says how, see [work.conclude].
	stop context.CancelCauseFunc
	side sync.WaitGroup // the goroutines beside that of Work

	// Only the goroutine of Work touches these.
	retries   timer.Pace // of looking for the task
	reports   int        // how many events were reported
	cursor    string     // of the last item
	skipped   int        // events that could not be read
	thought   string     // the id of the last status message that was told
	ended     bool       // the end was reported
	lastAsked string     // the key of the last question

	session    session
	unrecorded bool // the session has to be recorded

	known     chan struct{}                 // closed once the id of the task at the remote is
	named     atomic.Pointer[names]         // nil until then
	replies   atomic.Int64                  // how many were sent
	injection atomic.Pointer[chan struct{}] // closed once the last injection was answered; nil for none
	asked     atomic.Pointer[asked]         // what the remote waits for
	cancel    atomic.Pointer[core.CancelRequested]
	cancelled atomic.Pointer[wire.Task] // as the remote answered the cancel
	over      chan *wire.Task           // has it for a Work that is parked
}

// names are the ids that the remote has given the task and its conversation.
type names struct{ task, context string }

// The causes for which a work ends early.
var (
	errDone  = errors.New("the work is done")
	errGrace = errors.New("the remote agent did not end the cancelled task")
)

// Work implements [agent.Agent].
func (a *Agent) Work(ctx context.Context, t agent.Turn) error {
	current := a.run.Load()
	if current == nil {
		return core.NewFault(core.CodeUnreachable, "the remote agent is not connected")
	}
	ring := a.opts.Frames.Connect(wire.Dialect, nil)
	defer ring.Close()
	frames, aside := ring.Turn(t.Task(), t.Request().History), ring.Turn(t.Task(), nil)
	ctx = frames.With(ctx)
	inner, stop := context.WithCancelCause(ctx)
	w := &work{
		agent: a, remote: current.remote.Load(), turn: agent.Framed(t, frames), beside: agent.Framed(t, aside), aside: aside, stop: stop, known: make(chan struct{}), over: make(chan *wire.Task, 1),
	}
	w.told = told{report: w.report, count: a.opts.Count, exact: w.remote.cursors}
	w.session = a.sessions.of(agent.ConversationOf(t))
	release := context.AfterFunc(current.over, func() { stop(context.Cause(current.over)) })
	w.side.Go(func() { w.listen(inner) })
	err := w.follow(inner)
	if w.reports == 0 && unreachable(w.fault(err)) {
		err = cmp.Or(a.lost(inner, current), err)
	}
	err = w.conclude(ctx, inner, err)
	release()
	stop(errDone)
	w.side.Wait()
	w.remember(ctx)
	return err
}

// conclude reports how the work ended, where that has not been done, and returns the error of
// Work.
func (w *work) conclude(ctx, inner context.Context, err error) error {
	cancel, snapshot := w.cancel.Load(), w.cancelled.Load()
	var open *unansweredQuestion
	switch cause := context.Cause(inner); {
	case w.ended:
		return nil
	case ctx.Err() != nil:
		w.abandon(ctx)
		return context.Cause(ctx)
	case errors.As(cause, &open):
		return w.leaveOpen(open)
	case errors.Is(cause, errGrace) && snapshot != nil && w.takeSnapshot(inner, snapshot):
		return nil
	case cancel != nil && err != nil:
		return w.turn.Report(core.Cancelled{Reason: cmp.Or(cancel.Reason, "cancelled by "+cancel.By)}, nil)
	case cause != nil:
		return w.fault(cause)
	}
	return w.fault(err)
}

// takeSnapshot reports whether the task has ended with the answer to a cancel, which it tells.
func (w *work) takeSnapshot(ctx context.Context, t *wire.Task) bool {
	frame.TurnOf(ctx).BeginAs(w.aside)
	return w.snapshot(ctx, t) == nil && w.ended
}

// fault returns the Fault of an error of the task.
func (w *work) fault(err error) error {
	var f *core.Fault
	var refused *wire.Error
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &refused):
		return refused.Fault().Because(err)
	case errors.Is(err, errCut):
		return core.NewFault(core.CodeUnreachable, "the connection to the remote agent was cut, and its task could not be found again")
	}
	return err
}

// abandonTimeout bounds how long the remote is told that nobody waits any more.
const abandonTimeout = 2 * time.Second

// abandon cancels a task at the remote for which nobody waits any more.
func (w *work) abandon(ctx context.Context) {
	id := w.id()
	if id == "" || w.cancel.Load() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonTimeout)
	defer cancel()
	if _, err := w.agent.cancelTask(ctx, w.remote, id); err != nil {
		w.agent.opts.Log.Warn("a task that nobody waits for goes on at the remote agent", "task", w.turn.Task(), "error", err)
	}
}

// keepSession keeps the session of the thread for its next turn, in memory. That of a task
// outside a thread is not recorded unless it waits for an answer: few ask again there.
func (w *work) keepSession() {
	in := agent.ConversationOf(w.turn)
	if w.agent.sessions.set(in, w.session) && (w.session.Open != nil || !in.BeganWith(w.turn.Task())) {
		w.unrecorded = true
	}
}

// remember keeps and records the session of the thread for its next turn.
func (w *work) remember(ctx context.Context) {
	in := agent.ConversationOf(w.turn)
	if w.keepSession(); !w.unrecorded {
		return
	}
	if err := w.agent.sessions.record(context.WithoutCancel(ctx), in); err != nil {
		w.agent.opts.Log.Warn("the context of a thread could not be recorded", "task", w.turn.Task(), "thread", in.Thread, "error", err)
	}
}

// follow sends the request and reads what the remote says until the task has ended.
func (w *work) follow(ctx context.Context) error {
	tries := 0
	w.retries = w.agent.opts.pace()
	w.retries.Begin()
	s, err := w.begin(ctx)
	if err != nil && w.repeats() && unreachable(err) {
		s, tries, err = w.find(ctx, tries)
	}
	if err != nil {
		return err
	}
	for {
		heard, err := w.read(ctx, s)
		s.close()
		switch {
		case w.ended:
			return nil
		case err == nil || !errors.Is(err, errCut):
			return err
		}
		if heard {
			tries = 0
		}
		if asked := w.waiting(); asked != nil {
			s, err = w.park(ctx, asked)
		} else {
			s, tries, err = w.find(ctx, tries)
		}
		if err != nil {
			return err
		}
	}
}

// read tells what comes from a source until that or the task ends. heard says that there was
// anything new.
func (w *work) read(ctx context.Context, s source) (heard bool, err error) {
	for !w.ended {
		it, err := s.next(ctx)
		if e, ok := s.(*events); ok {
			w.skipped = max(w.skipped, e.skipped)
		}
		if err != nil {
			return heard, err
		}
		news, err := w.take(ctx, it)
		if err != nil {
			return heard, err
		}
		heard = heard || news
	}
	return heard, nil
}

// maxTries is how often in a row a task that was cut is looked for without news of it.
const maxTries = 5

// find returns where a task goes on whose connection was cut.
func (w *work) find(ctx context.Context, tries int) (source, int, error) {
	if w.id() == "" && !w.repeats() {
		return nil, tries, core.NewFault(core.CodeUnreachable, "the connection to the remote agent was cut before it named its task")
	}
	w.agent.opts.Count("a2a.agent.cut")
	for {
		if tries >= maxTries {
			return nil, tries, core.NewFault(core.CodeUnreachable, "the connection to the remote agent was cut, and its task was not continued in %d attempts", maxTries)
		}
		if err := w.retries.Wait(ctx); err != nil {
			return nil, tries, err
		}
		tries++
		s, err := w.again(ctx)
		var refused *wire.Error
		switch {
		case err == nil:
			return s, tries, nil
		case ctx.Err() != nil:
			return nil, tries, context.Cause(ctx)
		case errors.As(err, &refused) && refused.Status < 500 && refused.Reason != wire.ReasonUnsupportedOperation:
			return nil, tries, core.NewFault(core.CodeUnreachable, "the connection to the remote agent was cut, and it does not continue the task: %s", reason(err)).Because(err)
		}
	}
}

// repeats reports whether a message may be sent again of which nobody knows whether it arrived:
// our server recognises it by its id. Of others the specification does not demand that (section
// 3.3.1), and they would do the task twice.
func (w *work) repeats() bool { return w.remote.cursors }

// unreachable reports whether a request was not answered.
func unreachable(err error) bool {
	var refused *wire.Error
	return errors.Is(err, &core.Fault{Code: core.CodeUnreachable}) && !errors.As(err, &refused)
}

// again asks for the rest of the task, or for all of it where its id is not known yet.
func (w *work) again(ctx context.Context) (source, error) {
	if id := w.id(); id != "" {
		return w.subscribe(ctx, id)
	}
	return w.begin(ctx)
}

// subscribe returns the rest of a task: a stream where the remote has one.
func (w *work) subscribe(ctx context.Context, id string) (source, error) {
	poll := newPolling(w.agent, w.remote, id)
	if !w.remote.streams {
		return poll, nil
	}
	of := wire.TaskRequest{ID: id}
	if w.remote.cursors && w.cursor != "" {
		of.Metadata = strictjson.Encode(map[string]string{wire.CursorExtension: w.cursor})
	}
	resp, err := w.agent.do(ctx, w.remote, call{op: opSubscribe, task: of})
	switch {
	case refusedAs(err, wire.ReasonUnsupportedOperation): // it has ended, or there are no streams
		t, err := w.agent.getTask(ctx, w.remote, id)
		if err != nil {
			return nil, err
		}
		poll.first = &item{StreamResponse: wire.StreamResponse{Task: &t}}
		return poll, nil
	case err != nil:
		return nil, err
	}
	return w.source(resp)
}

// source returns what an answer to a message or a subscription continues with.
func (w *work) source(resp response) (source, error) {
	if resp.body != nil {
		return w.agent.events(w.remote, resp), nil
	}
	it, err := readItem(new(wire.ItemReader), resp.result)
	var fault *core.Fault
	switch {
	case errors.As(err, &fault):
		return nil, fault
	case err != nil:
		return nil, core.NewFault(core.CodeInternal, "the remote agent's answer to a message is neither a task nor a message: %s", reason(err))
	}
	if it.Task != nil && !it.Task.Status.State.Terminal() {
		poll := newPolling(w.agent, w.remote, it.Task.ID)
		poll.first, poll.last = &it, it.Task.Status.At
		return poll, nil
	}
	return &once{&it}, nil
}

// id returns the id of the task at the remote, "" until it is known.
func (w *work) id() string {
	if named := w.named.Load(); named != nil {
		return named.task
	}
	return ""
}
