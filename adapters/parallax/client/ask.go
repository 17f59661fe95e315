package client

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// Agent is an agent that works on the hub, seen from inside. It is safe for
// concurrent use.
type Agent struct{ worker *worker }

// ID is who the hub took it in as.
func (a *Agent) ID() core.AgentID { return a.worker.id }

// ask is something that the agent asked of others, at the agent's end. What is
// heard waits in memory until the asker takes it, so that a slow asker holds up
// neither the other askers nor a cancel.
type ask struct {
	mu       sync.Mutex
	heard    []core.Body
	streamed bool          // text came as progress
	news     chan struct{} // holds one token while there is something
}

// Ask asks another agent (extension task_request) and returns its answer. hear,
// unless it is nil, is told everything on the way, in order, and the end. Within
// a handler, with its context, the hub learns which task the question is for.
//
// The error is a Fault: why the request was refused or failed, cancelled or
// timeout when ctx ended, which also cancels the request, or unreachable when the
// connection ended. The answer is then as far as it went.
func (a *Agent) Ask(ctx context.Context, r core.Request, hear func(core.Body)) (core.Answer, error) {
	w := a.worker
	if !w.extensions[wire.ExtensionRequest] {
		return core.Answer{}, core.NewFault(core.CodeUnsupported, "the agent did not declare task_request")
	}
	p, err := requestOf(ctx, r)
	if err != nil {
		return core.Answer{}, core.AsFault(err)
	}
	p.RequestID = "ask_" + strconv.FormatUint(w.ids.Add(1), 10)
	q := &ask{news: make(chan struct{}, 1)}
	w.mu.Lock()
	w.asks[p.RequestID] = q
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		delete(w.asks, p.RequestID)
		w.mu.Unlock()
	}()
	frame, err := w.frame(wire.TypeTaskRequest, p.RequestID, p)
	if err != nil {
		return core.Answer{}, core.AsFault(err)
	}
	frame = wire.Restore(frame, r.Foreign)
	if len(frame) > w.opts.MaxMessageBytes {
		return core.Answer{}, core.NewFault(core.CodeTooLarge, "the request makes a message of %d bytes, the limit is %d", len(frame), w.opts.MaxMessageBytes)
	}
	if err := w.link.Send(ctx, frame, len(frame)); err != nil {
		return core.Answer{}, gone(err)
	}
	return w.listen(ctx, p.RequestID, q, hear)
}

// listen puts the answer together.
func (w *worker) listen(ctx context.Context, request string, q *ask, hear func(core.Body)) (core.Answer, error) {
	var events []core.Event
	for {
		select {
		case <-q.news:
		case <-w.link.Done():
			return core.Fold(events), gone(nil)
		case <-ctx.Done():
			f := core.AsFault(context.Cause(ctx))
			if f.Code == core.CodeInternal {
				f = core.NewFault(core.CodeCancelled, "the task that asked was cancelled")
			}
			cancel := wire.TaskCancel{RequestID: request, Reason: f.Message}
			// The hub cancels by itself what an agent that left had asked.
			_ = w.send(context.WithoutCancel(ctx), wire.TypeTaskCancel, cancel)
			return core.Fold(events), f
		}
		q.mu.Lock()
		heard := q.heard
		q.heard = nil
		q.mu.Unlock()
		for _, b := range heard {
			events = append(events, core.Event{Seq: uint64(len(events)) + 1, At: time.Now(), Body: b})
			if hear != nil {
				hear(b)
			}
			if b.Kind().Ends() {
				answer := core.Fold(events)
				if answer.Fault != nil {
					return answer, answer.Fault
				}
				return answer, nil
			}
		}
	}
}

// requestOf is the task_request for r.
func requestOf(ctx context.Context, r core.Request) (wire.TaskRequest, error) {
	t, err := wire.TaskOf(r)
	if err != nil {
		return wire.TaskRequest{}, err
	}
	p := wire.TaskRequest{Task: t, To: r.To.String(), ParentTaskID: string(r.Cause)}
	if j, working := ctx.Value(jobKey{}).(*job); working && p.ParentTaskID == "" {
		p.ParentTaskID = j.about.TaskID
	}
	deadline, bounded := ctx.Deadline()
	if !r.Deadline.IsZero() && (!bounded || r.Deadline.Before(deadline)) {
		deadline, bounded = r.Deadline, true
	}
	if bounded {
		p.Timeout = max(1, wire.MillisecondsOf(time.Until(deadline)))
	}
	return p, nil
}

// hear hands on what the hub says of something that was asked.
func (w *worker) hear(request string, bodies ...core.Body) {
	w.hearing(request, func(q *ask) []core.Body {
		for _, b := range bodies {
			q.streamed = q.streamed || b.Kind() == core.KindText
		}
		return bodies
	})
}

// hearing adds to what was heard, under the lock of the ask.
func (w *worker) hearing(request string, what func(*ask) []core.Body) {
	w.mu.Lock()
	q := w.asks[request]
	w.mu.Unlock()
	if q == nil {
		return // the asker has left
	}
	q.mu.Lock()
	q.heard = append(q.heard, what(q)...)
	q.mu.Unlock()
	select {
	case q.news <- struct{}{}:
	default:
	}
}

func gone(err error) *core.Fault {
	return core.NewFault(core.CodeUnreachable, "the connection to the hub has ended").Because(err)
}

func (w *worker) send(ctx context.Context, kind string, payload any) error {
	return w.reply(ctx, kind, "", payload)
}

func (w *worker) reply(ctx context.Context, kind, id string, payload any) error {
	frame, err := w.frame(kind, id, payload)
	if err != nil {
		return err
	}
	return w.link.Send(ctx, frame, len(frame))
}

func (w *worker) frame(kind, id string, payload any) ([]byte, error) {
	if id == "" {
		id = "agent_" + strconv.FormatUint(w.ids.Add(1), 10)
	}
	frame, err := wire.Encode(kind, id, time.Now(), payload)
	if err != nil {
		return nil, err
	}
	return wire.Sign(frame, w.opts.Secret)
}
