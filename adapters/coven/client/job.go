package client

import (
	"context"
	"errors"
	"sync"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// job is one request at the agent's end. Its handler's context leads to it.
type job struct {
	worker  *worker
	message *pb.SendMessage

	mu     sync.Mutex
	ended  bool                                 // its end was said
	texted bool                                 // a piece of text was said
	asked  map[string]chan core.ApprovalDecided // guarded by worker.mu; made when one is needed
}

func (j *job) id() string { return j.message.GetRequestId() }

// cancelled returns why the hub cancelled the request of a handler's context, or nil.
func cancelled(ctx context.Context) *core.Fault {
	var why *core.Fault
	if errors.As(context.Cause(ctx), &why) {
		return why
	}
	return nil
}

// run lets the handler answer one request and makes sure that it ends.
func (w *worker) run(ctx context.Context, _ string, j *job) {
	ctx = context.WithValue(ctx, jobKey{}, j)
	var err error
	begun := cancelled(ctx) == nil
	if begun {
		r := wire.RequestOf(j.message)
		r.To = core.ToAgent(w.card.ID)
		err = w.handle(ctx, r, func(b core.Body) error { return w.say(ctx, j, b) })
	}
	var end core.Body = core.Done{}
	switch why := cancelled(ctx); {
	case why != nil && (!begun || err != nil):
		end = core.Cancelled{Reason: why.Message}
	case err != nil:
		end = core.Failed{Fault: core.AsFault(err)}
	}
	// When the connection is lost the hub has ended the task already.
	_ = w.say(ctx, j, end)
	w.forget(j)
}

// forget makes room for the next request, or leaves if there will be none.
func (w *worker) forget(j *job) {
	w.tasks.Release(j.id())
	w.mu.Lock()
	for id, mine := range j.asked {
		w.approvals[id] = without(w.approvals[id], mine)
		if len(w.approvals[id]) == 0 {
			delete(w.approvals, id)
		}
	}
	leaving := w.leaving
	w.mu.Unlock()
	if leaving {
		w.leave()
	}
}

func without(all []chan core.ApprovalDecided, one chan core.ApprovalDecided) []chan core.ApprovalDecided {
	var rest []chan core.ApprovalDecided
	for _, c := range all {
		if c != one {
			rest = append(rest, c)
		}
	}
	return rest
}

// say tells the hub one thing about a job. It returns a conflict Fault behind the
// end, an unsupported one for what agents do not say, a too_large one for what
// does not fit, the cause of ctx, or the reason for which the connection ended.
func (w *worker) say(ctx context.Context, j *job, b core.Body) error {
	ends := b.Kind().Ends()
	j.mu.Lock()
	over, texted := j.ended, j.texted
	j.ended = over || ends
	if piece, ok := b.(core.Text); ok && piece.Text != "" {
		j.texted = true
	}
	j.mu.Unlock()
	switch {
	case over:
		return core.NewFault(core.CodeConflict, "the request has ended: %s comes too late", b.Kind())
	case ctx.Err() != nil && !ends:
		return context.Cause(ctx)
	}
	if a, ok := b.(core.ApprovalRequested); ok {
		w.expectDecision(j, a.ID)
	}
	if ends {
		ctx = context.WithoutCancel(ctx) // the end of a cancelled request is still due
	}
	return w.tell(ctx, j.id(), b, texted)
}

// tell sends the messages that a body is told by. It waits for room in the queue
// until ctx ends or the link is closed.
func (w *worker) tell(ctx context.Context, request string, b core.Body, texted bool) error {
	if a, ok := b.(core.InjectionAnswered); ok {
		return w.send(ctx, &pb.AgentMessage{Payload: &pb.AgentMessage_InjectionAck{InjectionAck: wire.AckOf(a)}})
	}
	if native(b, w.maxBytes) {
		return w.respond(ctx, request, b)
	}
	for _, part := range adapt(b, texted, w.maxBytes) {
		if err := w.respond(ctx, request, part); err != nil {
			return err
		}
	}
	return nil
}

// respond sends one response.
func (w *worker) respond(ctx context.Context, request string, b core.Body) error {
	m, err := wire.ResponseOf(request, b, nil)
	if err != nil {
		return err
	}
	// In one piece of memory, since there are many.
	whole := &struct {
		pb.AgentMessage
		payload pb.AgentMessage_Response
	}{}
	whole.payload.Response, whole.Payload = m, &whole.payload
	return w.send(ctx, &whole.AgentMessage)
}
