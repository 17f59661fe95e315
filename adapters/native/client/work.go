package client

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// WorkOptions are the options of [Work]. The zero WorkOptions are the defaults.
type WorkOptions struct {
	// Joined is called once the hub has accepted the agent, with the connection, by which the
	// handler can ask others.
	Joined func(*Client)
	// Injected is called with context for a task that runs, and says whether it is taken, and
	// if not why. nil declares that the agent takes none.
	Injected func(core.TaskID, core.Injected) (accepted bool, reason string)
	// Decided is called with the answers to approvals. nil ignores them.
	Decided func(core.TaskID, core.ApprovalDecided)
	// Link bounds the connection.
	Link link.Options
	// Log receives what the hub refuses; nil discards it.
	Log *slog.Logger

	// inject is called in place of Injected, and answers by itself.
	inject func(core.TaskID, core.Injected)
}

// Work is the agent's end of the dialect: it joins with the card and calls the handler for each
// task, at most card.MaxConcurrent at once. It returns once no handler runs any more: nil when
// the connection was closed normally, a Fault when the hub refused or replaced the agent, what
// kept it from asking to join, and otherwise the *[link.Reason]. Injected and Decided are called by the reader of the
// connection: they must return soon. ctx may carry an [agent.Leave].
func Work(ctx context.Context, conn link.Conn[[]byte, []byte], card core.Card, handle core.Handler, opts WorkOptions) error {
	card.MaxConcurrent = max(1, card.MaxConcurrent)
	card.Features |= core.FeatureStreaming | core.FeatureCancellation | core.FeatureNotices
	if opts.Injected != nil {
		card.Features |= core.FeatureInjection
	}
	if opts.Decided != nil {
		card.Features |= core.FeatureApprovals
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	w := &worker{opts: opts, opened: map[core.TaskID]core.Opened{}, ready: make(chan struct{})}
	const notices = 64 // come beside the tasks
	w.tasks = agent.Run(inner, card.MaxConcurrent, card.MaxConcurrent+notices, func(ctx context.Context, id string, o core.Opened) {
		w.work(inner, ctx, &job{worker: w, id: core.TaskID(id), opened: o}, handle)
	})
	w.client = New(ctx, conn, Options{Event: w.event, Told: w.told, Link: opts.Link})
	close(w.ready)
	disconnected := agent.LeaveOf(ctx).Connected(func() {
		_ = w.client.Send(inner, "load", wire.Load{State: core.LoadDraining}) // or the connection has ended
	}, func() { _ = w.client.Drain(inner) })
	_, err := w.client.Call(ctx, core.Join{Card: card}, wire.With{})
	if err == nil {
		if opts.Joined != nil {
			opts.Joined(w.client)
		}
		<-w.client.Done()
	}
	w.client.link.Close(link.Reason{Cause: link.Normal, Err: err}) // with what kept it from joining
	<-w.client.Done()
	cancel()
	disconnected()
	w.tasks.Close()
	reason := w.client.Reason()
	var refused *wire.Refusal
	switch {
	case errors.As(err, &refused), errors.As(reason.Err, &refused):
		return refused.Fault
	case reason.Cause == link.Normal:
		return reason.Err
	}
	return &reason
}

// worker is an agent's connection to a hub.
type worker struct {
	opts   WorkOptions
	client *Client
	ready  chan struct{} // closed once client is set
	tasks  *agent.Tasks[core.Opened]

	mu     sync.Mutex
	opened map[core.TaskID]core.Opened // told, and not yet assigned
}

// event handles an event of the hub. The reader of the connection calls it.
func (w *worker) event(t wire.Told) {
	<-w.ready
	if t.Role != "agent" {
		return
	}
	switch b := t.Event.Body.(type) {
	case core.Opened:
		w.mu.Lock()
		w.opened[t.Task] = b
		w.mu.Unlock()
	case core.Assigned:
		w.mu.Lock()
		o := w.opened[t.Task]
		delete(w.opened, t.Task)
		w.mu.Unlock()
		if refused := w.tasks.Add(string(t.Task), o); refused != nil {
			w.report(t.Task, core.Failed{Fault: refused})
		}
	case core.CancelRequested:
		w.tasks.Cancel(string(t.Task), core.NewFault(core.CodeCancelled, "%s", b.Reason), nil)
	case core.Injected:
		if w.opts.inject != nil {
			w.opts.inject(t.Task, b)
			return
		}
		accepted, reason := w.opts.Injected(t.Task, b)
		w.report(t.Task, core.InjectionAnswered{ID: b.ID, Accepted: accepted, Reason: reason})
	case core.ApprovalDecided:
		if w.opts.Decided != nil {
			w.opts.Decided(t.Task, b)
		}
	case core.Done, core.Failed, core.Cancelled:
		w.tasks.Cancel(string(t.Task), core.NewFault(core.CodeCancelled, "the hub has ended the task"), nil)
	}
}

// report sends an event from the reader of the connection, which must not wait for room: what
// has none is lost with a log.
func (w *worker) report(id core.TaskID, body core.Body) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := w.client.Report(ctx, id, body, nil); err != nil {
		w.opts.Log.Warn("the connection has no room for an answer", "task", id, "kind", body.Kind().String(), "error", err)
	}
}

// told logs what the hub refuses. [Work] returns why it ends the connection.
func (w *worker) told(kind string, v strictjson.Value) {
	var r wire.Refusal
	if kind == "error" && v.Decode(&r) == nil && !r.Fatal {
		w.opts.Log.Warn("the hub refused a frame", "error", string(v.Raw()))
	}
}

// job is one task of the worker.
type job struct {
	worker *worker
	id     core.TaskID
	opened core.Opened
	ended  bool // its end was reported
}

// jobKey is the key of the job in the context of its handler.
type jobKey struct{}

// isNotice reports whether nobody waits for an answer.
func (j *job) isNotice() bool { return j.opened.Request.Intent == core.IntentNotify }

// report reports an event, for one caller at a time.
func (j *job) report(ctx context.Context, b core.Body, foreign *core.Foreign) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case j.isNotice():
		return nil
	case j.ended:
		return core.NewFault(core.CodeConflict, "the task has ended")
	}
	j.ended = b.Kind().Ends()
	if j.ended {
		j.worker.tasks.Release(string(j.id)) // there is room for the next before the hub knows
	}
	return j.worker.client.Report(ctx, j.id, b, foreign)
}

// work does one task. all is the context of the worker, in which the end of a cancelled task is
// sent.
func (w *worker) work(all, ctx context.Context, j *job, handle core.Handler) {
	if r := j.opened.Request; !r.Deadline.IsZero() {
		var done context.CancelFunc
		ctx, done = context.WithDeadline(ctx, r.Deadline)
		defer done()
	}
	err := context.Cause(ctx)
	if err == nil {
		err = handle(context.WithValue(ctx, jobKey{}, j), j.opened.Request, func(b core.Body) error { return j.report(ctx, b, nil) })
	}
	if j.isNotice() || j.ended {
		return
	}
	w.tasks.Release(string(j.id))
	_ = w.client.Report(all, j.id, endOf(ctx, err), nil) // if it cannot be sent, nobody waits for it
}

// endOf returns the end of a task whose handler returned err.
func endOf(ctx context.Context, err error) core.Body {
	if err == nil {
		return core.Done{}
	}
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, ctx.Err()) {
		err = cause
	}
	f := core.AsFault(err)
	if f.Code == core.CodeCancelled {
		return core.Cancelled{Reason: f.Message}
	}
	return core.Failed{Fault: f}
}
