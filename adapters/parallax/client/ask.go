package client

import (
	"context"
	"strconv"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
)

// Agent asks other agents on behalf of the agent that [Work] registered. It is safe for
// concurrent use.
type Agent struct{ worker *worker }

// ask is a task_request. Events wait in memory until the caller of Ask takes them, so that
// a slow caller delays neither other requests nor a cancel.
type ask struct {
	streamed bool // text came as progress; owned by the reader loop
	events   *fifo.Mailbox[core.Body]
}

// Ask asks another agent (extension task_request) and returns its answer. Unless it is
// nil, onEvent is called with each event in order, including the end. In a handler, with
// its context, the hub learns for which task the agent asks.
//
// The error is a Fault: that of the hub or the agent, cancelled or timeout if ctx ended,
// which also cancels the request, or unreachable if the connection ended. The answer is
// then incomplete.
func (a *Agent) Ask(ctx context.Context, r core.Request, onEvent func(core.Body)) (core.Answer, error) {
	w := a.worker
	if !w.extensions[wire.ExtensionRequest] {
		return core.Answer{}, core.NewFault(core.CodeUnsupported, "the agent did not declare task_request")
	}
	p, err := requestOf(ctx, r)
	if err != nil {
		return core.Answer{}, core.AsFault(err)
	}
	p.RequestID = "ask_" + strconv.FormatUint(w.ids.Add(1), 10)
	q := &ask{events: fifo.NewMailbox[core.Body](0, nil)}
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
	if len(frame) > wire.DefaultMaxMessageBytes {
		return core.Answer{}, core.NewFault(core.CodeTooLarge, "the request makes a message of %d bytes, the limit is %d", len(frame), wire.DefaultMaxMessageBytes)
	}
	if err := w.link.Send(ctx, frame, len(frame)); err != nil {
		return core.Answer{}, disconnected(err)
	}
	return w.collect(ctx, p.RequestID, q, onEvent)
}

// collect returns the answer of a request.
func (w *worker) collect(ctx context.Context, request string, q *ask, onEvent func(core.Body)) (core.Answer, error) {
	var events []core.Event
	for {
		select {
		case <-q.events.Ready():
		case <-w.link.Done():
			return core.Fold(events), disconnected(nil)
		case <-ctx.Done():
			f := core.AsFault(context.Cause(ctx))
			if f.Code == core.CodeInternal {
				f = core.NewFault(core.CodeCancelled, "the task that asked was cancelled")
			}
			// If it is lost with the connection, the hub cancels the request itself.
			_ = w.send(context.WithoutCancel(ctx), wire.TypeTaskCancel, "", wire.TaskCancel{RequestID: request, Reason: f.Message})
			return core.Fold(events), f
		}
		for _, b := range q.events.PollAll() {
			events = append(events, core.Event{Seq: uint64(len(events)) + 1, At: time.Now(), Body: b})
			if onEvent != nil {
				onEvent(b)
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

// requestOf returns the task_request for r.
func requestOf(ctx context.Context, r core.Request) (wire.TaskRequest, error) {
	t, err := wire.TaskOf(r)
	if err != nil {
		return wire.TaskRequest{}, err
	}
	p := wire.TaskRequest{Task: t, To: r.To.String(), ParentTaskID: string(r.Cause)}
	if j, inHandler := ctx.Value(jobKey{}).(*job); inHandler && p.ParentTaskID == "" {
		p.ParentTaskID = j.ref.TaskID
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

// deliver passes events to the caller of Ask, unless that has returned. bodies gets
// whether text came as progress, and whether usage did, which is always so.
func (w *worker) deliver(request string, bodies func(streamed, counted bool) []core.Body) {
	w.mu.Lock()
	q := w.asks[request]
	w.mu.Unlock()
	if q == nil {
		return
	}
	for _, b := range bodies(q.streamed, true) {
		q.streamed = q.streamed || b.Kind() == core.KindText
		q.events.Put(b)
	}
}

func disconnected(err error) *core.Fault {
	return core.NewFault(core.CodeUnreachable, "the connection to the hub has ended").Because(err)
}

// send sends a message. An empty id gets one of the agent.
func (w *worker) send(ctx context.Context, kind, id string, payload any) error {
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
