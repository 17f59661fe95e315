package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// asked is what the remote waits for: the decisions or the answer of people.
type asked struct {
	key       string                            // tells it from the next one
	approvals map[string]core.ApprovalRequested // by their ids
	cancel    context.CancelFunc                // of the question to people

	mu     sync.Mutex
	parked bool              // Work waits for the reply, since the remote has ended the stream
	sent   bool              // the reply was sent beside the stream
	kind   core.Kind         // of the event that the reply to Work is; zero for none
	reply  chan wire.Message // to Work where it is parked
}

// unansweredQuestion is the cause for which a work ends whose question nobody answers.
type unansweredQuestion struct{ text string }

func (*unansweredQuestion) Error() string { return "nobody answers the question of the remote agent" }

// ask puts what the remote wants to the people of the task: approvals as our server writes
// them, else a question.
func (w *work) ask(ctx context.Context, u *wire.StatusUpdate) error {
	key := u.Status.At.String()
	var parts []wire.Part
	if m := u.Status.Message; m != nil {
		key, parts = m.ID+" "+key, m.Parts
	}
	if key == w.lastAsked || parts == nil && w.waiting() != nil {
		return nil // it is shown again
	}
	w.withdraw()
	w.lastAsked = key
	ctx, cancel := context.WithCancel(ctx)
	a := &asked{key: key, approvals: map[string]core.ApprovalRequested{}, cancel: cancel, reply: make(chan wire.Message, 1)}
	approvals, q, theirs := wantedIn(parts)
	for _, want := range approvals {
		a.approvals[want.ID] = want
	}
	w.asked.Store(a)
	for _, want := range approvals { // the decision may come before the report returns
		if err := w.report(want, nil); err != nil {
			w.withdraw()
			return err
		}
	}
	if len(a.approvals) > 0 && theirs == "" {
		return nil
	}
	q.Text = cmp.Or(q.Text, "The remote agent waits for an answer and does not say to what.")
	w.side.Go(func() { w.people(ctx, a, q, theirs) })
	return nil
}

// wantedIn returns the approvals and the question in the parts of a message, and the id of the question there if
// our server has written it.
func wantedIn(parts []wire.Part) (approvals []core.ApprovalRequested, q question.Question, theirs string) {
	q.Text = strings.TrimSpace(wire.Text(parts))
	for _, p := range parts {
		if p.Kind != wire.PartData {
			continue
		}
		v := strictjson.ParseValid(p.Data)
		if r := v.Get("approval"); r.Kind() == strictjson.Object {
			var want core.ApprovalRequested
			if r.Decode(&want) == nil && want.ID != "" {
				approvals = append(approvals, want)
			}
		}
		if r := v.Get("question"); r.Kind() == strictjson.Object {
			var want question.Question
			if r.Decode(&want) == nil && want.Check() == nil { // other members than these are for the host
				theirs = want.ID
				q.Text, q.Header, q.Options, q.Several = want.Text, want.Header, want.Options, want.Several
			}
		}
	}
	return approvals, q, theirs
}

// people asks the people of the task and sends what they say.
func (w *work) people(ctx context.Context, a *asked, q question.Question, theirs string) {
	out, err := w.turn.Ask(ctx, q)
	switch {
	case ctx.Err() != nil: // it was withdrawn, or the task has ended
		return
	case err != nil || !out.Answered:
		w.agent.opts.Log.Info("nobody answers the question of the remote agent", "task", w.turn.Task(), "reason", cmp.Or(out.Reason, errorText(err)))
		w.stop(&unansweredQuestion{q.Text})
		return
	}
	part := wire.TextPart(out.String())
	if theirs != "" {
		part = wire.Settlement{Answer: &wire.Answer{ID: theirs, Selected: out.Selected, Text: out.Text}}.Part()
	}
	w.settle(w.aside.With(ctx), a, 0, part)
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// settle sends a reply, of the kind if it is an event, to what the remote asked: beside the stream, or where that has ended as
// the message that Work goes on with.
func (w *work) settle(ctx context.Context, a *asked, kind core.Kind, part wire.Part) {
	m := w.message(part)
	a.mu.Lock()
	if a.parked {
		a.parked, a.kind = false, kind
		a.reply <- m // there is room for one, and this is the only one
		a.mu.Unlock()
		return
	}
	a.sent = true
	a.mu.Unlock()
	err := w.post(w.aside.Telling(ctx, kind), m)
	switch {
	case err == nil, ctx.Err() != nil:
	case refusedAs(err, wire.ReasonUnsupportedOperation, wire.ReasonTaskNotFound): // the task went on without the reply
		w.agent.opts.Log.Info("the remote agent does not wait for the answer any more", "task", w.turn.Task(), "error", err)
	default:
		w.stop(err)
	}
}

// waiting returns what the remote waits for; nil for nothing.
func (w *work) waiting() *asked { return w.asked.Load() }

// withdraw ends the question to people.
func (w *work) withdraw() {
	if a := w.asked.Swap(nil); a != nil {
		a.cancel()
	}
}

// park waits for the reply, or the end of the task by a cancel, and returns where the task goes
// on. The remote has ended the stream with its question.
func (w *work) park(ctx context.Context, a *asked) (source, error) {
	a.mu.Lock()
	a.parked = !a.sent
	parked := a.parked
	a.mu.Unlock()
	if !parked {
		s, _, err := w.find(ctx, 0)
		return s, err
	}
	select {
	case m := <-a.reply:
		w.withdraw()
		s, err := w.send(w.aside.Telling(ctx, a.kind), wire.SendRequest{Message: m})
		if refusedAs(err, wire.ReasonUnsupportedOperation) {
			if t, lost := w.agent.getTask(ctx, w.remote, m.TaskID); lost == nil && t.Status.State != wire.StateInputRequired {
				s, _, err = w.find(ctx, 0) // it went on without the reply
			}
		}
		return s, err
	case t := <-w.over:
		frame.TurnOf(ctx).BeginAs(w.aside)
		return &once{&item{StreamResponse: wire.StreamResponse{Task: t}}}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// leaveOpen ends a task whose question nobody answers with the question as its answer. The next
// message of the thread continues the task at the remote.
func (w *work) leaveOpen(q *unansweredQuestion) error {
	w.ended = true
	if err := w.told.text(&artifact{}, q.text, nil); err != nil {
		return err
	}
	continues := w.turn.Request().Thread != ""
	if continues {
		w.session.Open = &open{w.lastAsked, w.told.kept()}
	}
	err := w.report(core.Done{Data: w.told.structured()}, nil)
	if !continues {
		w.abandon(context.Background())
	}
	return err
}

// listen hears what the hub tells the agent until ctx ends.
func (w *work) listen(ctx context.Context) {
	ctx = w.aside.With(ctx)
	for {
		b, err := w.turn.Next(ctx)
		if err != nil {
			return
		}
		switch b := b.(type) {
		case core.CancelRequested:
			w.cancelRemote(w.aside.Telling(ctx, b.Kind()), b)
		case core.ApprovalDecided:
			if a := w.waiting(); a != nil {
				if asked, is := a.approvals[b.ID]; is && b.IsFor(asked.Input) {
					d := wire.Decision{ID: b.ID, Approved: &b.Approved, All: b.All, Reason: b.Reason, InputSHA256: asked.InputSHA256}
					w.settle(ctx, a, b.Kind(), wire.Settlement{Approval: &d}.Part())
				}
			}
		case core.Injected:
			done := w.beginInjection()
			w.aside.Begin(frame.Incoming{})
			err = w.beside.Report(w.inject(w.aside.Telling(ctx, b.Kind()), b), nil)
			done()
		}
		if err != nil {
			return
		}
	}
}

// injectionTimeout bounds how long the end of a task waits for the answer to context that was sent
// before it.
const injectionTimeout = 2 * time.Second

// beginInjection notes that the answer to an injection is due: the stream may bring the end of the
// task before it.
func (w *work) beginInjection() (done func()) {
	answered := make(chan struct{})
	w.injection.Store(&answered)
	return func() { close(answered) }
}

// awaitInjection waits for an answer that is due.
func (w *work) awaitInjection() {
	due := w.injection.Load()
	if due == nil {
		return
	}
	timer := time.NewTimer(injectionTimeout)
	defer timer.Stop()
	select {
	case <-*due:
	case <-timer.C:
	}
}

// inject sends context to a hub, where a message to a task that waits for nothing is just that,
// and returns the answer. Elsewhere the protocol does not say what such a message means.
func (w *work) inject(ctx context.Context, b core.Injected) core.InjectionAnswered {
	refused := core.InjectionAnswered{ID: b.ID}
	switch {
	case !w.remote.cursors:
		refused.Reason = "a remote A2A agent takes no context while it works"
	case w.id() == "":
		refused.Reason = "the remote hub has not taken the task yet"
	case w.waiting() != nil:
		refused.Reason = "the remote hub waits for an answer, and would take it for that"
	default:
		if err := w.post(ctx, w.message(wire.TextPart(b.Content))); err != nil {
			refused.Reason = reason(err)
			break
		}
		return core.InjectionAnswered{ID: b.ID, Accepted: true}
	}
	return refused
}

// message returns another message of the task.
func (w *work) message(part wire.Part) wire.Message {
	m := wire.Message{ID: fmt.Sprintf("%s.%d", w.turn.Task(), w.replies.Add(1)), Role: wire.RoleUser, Parts: []wire.Part{part}}
	if named := w.named.Load(); named != nil {
		m.TaskID, m.ContextID = named.task, named.context
	}
	return m
}

// post sends a message beside the stream.
func (w *work) post(ctx context.Context, m wire.Message) error {
	r := wire.SendRequest{Message: m, Configuration: wire.Configuration{ReturnImmediately: true}}
	_, err := w.agent.do(ctx, w.remote, call{op: opSend, message: &r})
	return err
}

// cancelRemote cancels the task at the remote, and ends the work once the grace is over.
func (w *work) cancelRemote(ctx context.Context, c core.CancelRequested) {
	if w.cancel.Swap(&c) != nil {
		return
	}
	grace := time.AfterFunc(w.agent.opts.Grace, func() { w.stop(errGrace) })
	context.AfterFunc(ctx, func() { grace.Stop() })
	select {
	case <-w.known:
	case <-ctx.Done():
		return
	}
	t, err := w.agent.cancelTask(ctx, w.remote, w.id())
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, errGrace) {
			w.agent.opts.Log.Info("the remote agent did not take a cancel", "task", w.turn.Task(), "error", err)
		}
		return
	}
	if t.Status.State.Terminal() {
		w.cancelled.Store(&t)
		w.over <- &t // it has room for the only one
	}
}
