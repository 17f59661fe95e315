package client

import (
	"context"
	"errors"
	"sync"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/question"
)

// maxElicitations bounds the questions of a turn that wait. Further ones are answered cancel.
const maxElicitations = 16

// asker puts the questions of a turn to people, one after the other, in a goroutine of its own
// that begins with the first.
type asker struct {
	mu      sync.Mutex
	open    []*pending // those that wait, and first the one that people see
	running bool
	stopped bool
	done    sync.WaitGroup
}

// pending is an open request that asks people: elicitation/create, or a question of Qwen Code.
type pending struct {
	message jsonrpc.Message
	page    string // the id of the page to open, or ""
	// put asks people, and returns the answer to the request. An error says that nobody has answered.
	put    func(ctx context.Context) (response any, err error)
	ctx    context.Context //nolint:containedctx // it waits in the queue with its question
	cancel context.CancelCauseFunc
}

// The causes for which a question ends before people have answered it.
var (
	errWithdrawn = errors.New("the agent withdrew its question")
	errCompleted = errors.New("the page was done with")
	errTurnOver  = errors.New("the turn is over")
)

// elicit asks what the agent wants to know.
func (t *turn) elicit(ctx context.Context, m jsonrpc.Message) {
	req, fault := wire.Read[wire.ElicitationRequest](m.Params)
	if fault != nil {
		t.conn.settled(m.ID)
		_ = t.conn.refuse(ctx, m.ID, fault)
		return
	}
	asks, err := question.Elicit(m.Params, "", "")
	if err != nil {
		t.conn.settled(m.ID)
		_ = t.conn.refuse(ctx, m.ID, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s", core.AsFault(err).Message))
		return
	}
	t.askPeople(ctx, &pending{message: m, page: req.ElicitationID, put: func(ctx context.Context) (any, error) {
		said, err := asks.Ask(ctx, t.Ask)
		return wire.ElicitationResponse{Action: said.Action, Content: said.Content}, err
	}})
}

// askPeople has people asked. If too many questions wait, the request is answered as cancelled.
func (t *turn) askPeople(ctx context.Context, e *pending) {
	if !t.enqueue(ctx, e) {
		t.conn.opts.Count("editor.too_many_questions")
		_ = t.conn.answerCancelled(ctx, e.message)
	}
}

// enqueue has people asked, after the questions before. It fails if too many wait, or the turn is
// over.
func (t *turn) enqueue(ctx context.Context, e *pending) bool {
	a := &t.ask
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped || len(a.open) >= maxElicitations {
		return false
	}
	e.ctx, e.cancel = context.WithCancelCause(ctx)
	a.open = append(a.open, e)
	if !a.running {
		a.running = true
		a.done.Go(func() { t.askAll(ctx) })
	}
	return true
}

// askAll asks until no question waits.
func (t *turn) askAll(ctx context.Context) {
	a := &t.ask
	for {
		a.mu.Lock()
		if len(a.open) == 0 {
			a.running = false
			a.mu.Unlock()
			return
		}
		e := a.open[0]
		a.mu.Unlock()
		t.answerAsker(ctx, e)
		a.mu.Lock()
		a.open = a.open[1:]
		a.mu.Unlock()
		e.cancel(nil)
	}
}

func (t *turn) answerAsker(ctx context.Context, e *pending) {
	var response any
	err := e.ctx.Err()
	if err == nil {
		response, err = e.put(e.ctx)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	t.conn.settled(e.message.ID)
	switch cause := context.Cause(e.ctx); {
	case cause == errWithdrawn: //nolint:errorlint // it is the value itself
		_ = t.conn.refuse(ctx, e.message.ID, jsonrpc.Errorf(wire.CodeRequestCancelled, "the request was cancelled"))
	case cause == errCompleted: //nolint:errorlint // the same
		_ = t.conn.answer(ctx, e.message.ID, wire.ElicitationResponse{Action: wire.ElicitAccept})
	case err != nil:
		_ = t.conn.answerCancelled(ctx, e.message)
	default:
		_ = t.conn.answer(ctx, e.message.ID, response)
	}
}

// withdraw ends the question of a request, and reports whether there is one.
func (a *asker) withdraw(id string) bool {
	return a.end(errWithdrawn, func(e *pending) bool { return string(e.message.ID) == id })
}

// end ends questions with a cause, and reports whether there were any.
func (a *asker) end(cause error, which func(*pending) bool) (found bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.open {
		if which(e) {
			found = true
			e.cancel(cause)
		}
	}
	return found
}

// stop ends every question, takes no more, and waits until they are answered.
func (a *asker) stop() {
	a.end(errTurnOver, func(*pending) bool { return true })
	a.mu.Lock()
	a.stopped = true
	a.mu.Unlock()
	a.done.Wait()
}

// elicited notes that the page of an elicitation was done with.
func (t *turn) elicited(id string) {
	t.ask.end(errCompleted, func(e *pending) bool { return id != "" && e.page == id })
}
