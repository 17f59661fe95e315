package hub

import (
	"context"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/pack"
	"github.com/dragoman-hub/dragoman/core/question"
)

// A question of a call goes the other way: from the hub of the pack to that of the caller, whose people
// it is for.

// askFrom is a question that a pack of another hub has put here.
type askFrom struct {
	hub *remoteCaller
	id  string
}

// Show implements [question.Peer].
func (*askFrom) Show(question.Update) {}

// Settled implements [question.Peer].
func (a *askFrom) Settled(_ string, o question.Outcome, fault *core.Fault) {
	a.hub.mu.Lock()
	_, open := a.hub.asks[a.id]
	delete(a.hub.asks, a.id)
	a.hub.mu.Unlock()
	if open && a.hub.tell(callWord{Answered: &answerOfCall{a.id, o, o.By, fault}}) != nil {
		lost := core.NewFault(core.CodeOverloaded, "the answer of people could not be sent: ask again")
		a.hub.say(callWord{Answered: &answerOfCall{ID: a.id, Fault: lost}})
	}
}

// ask puts a question of a call to the people of its caller at the other hub, and waits for what they say.
func (o *remoteCaller) ask(ctx context.Context, call pack.Call, q question.Question) (question.Outcome, error) {
	id, a := core.NewID(), &asking{settled: make(chan settled, 1)}
	o.mu.Lock()
	if o.gone != nil {
		o.mu.Unlock()
		return question.Outcome{}, o.gone
	}
	o.waiting[id] = a
	o.mu.Unlock()
	defer func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.waiting, id)
	}()
	if err := o.tell(callWord{Execution: call.ID, Asked: &askedOfCall{id, q}}); err != nil {
		return question.Outcome{}, err
	}
	outcome, err := a.wait(ctx)
	if ctx.Err() != nil {
		o.say(callWord{Dropped: id})
	}
	return outcome, err
}

// asked puts a question of a pack of that hub to the people of the caller.
func (o *remoteCaller) asked(execution string, a askedOfCall) {
	asker := &askFrom{o, a.ID}
	o.mu.Lock()
	o.asks[a.ID] = asker
	o.mu.Unlock()
	var err error = nobodyWaits
	if p := o.engine.packOf(o.name, execution); p != nil {
		err = o.engine.askFor(p, execution, a.Question, asker)
	}
	if err != nil {
		asker.Settled("", question.Outcome{}, core.AsFault(err))
	}
}

var nobodyWaits = core.NewFault(core.CodeConflict, "no caller waits for the execution any more")

// askFor puts a question of an execution to the people of the tasks that it belongs to, or to those of its
// caller.
func (h *Hub) askFor(p pack.Peer, execution string, q question.Question, asker question.Peer) error {
	call, err := h.packs.Caller(p, execution)
	if err != nil {
		return err
	}
	session := (*Session)(call.Caller.(*peer))
	caller := session.root()
	tasks, err := caller.tasksOf(call.ID, call.Tasks)
	request := question.Request{Asker: asker, Tasks: h.allQuestioned(tasks, caller)}
	switch {
	case err != nil:
		return err
	case len(tasks) == 0 && session.asksIn == "":
		return core.NewFault(core.CodeUnsupported, "the caller of %s works on no task: there is nobody to ask", execution)
	case len(tasks) == 0:
		request.Call = question.Source{Thread: session.asksIn, From: session.identity.Principal}
	}
	if request.Question, err = h.complement(q, caller.AgentID()); err != nil {
		return err
	}
	request.Question.AskedBy(call.Tool)
	return h.putQuestion(request, caller)
}

// drop withdraws a question of a pack of that hub, which does not wait any more.
func (o *remoteCaller) drop(id string) {
	o.mu.Lock()
	a := o.asks[id]
	delete(o.asks, id)
	o.mu.Unlock()
	if a != nil {
		o.engine.questions.Leave(a)
	}
}

// answered takes what became of a question of a pack of this hub.
func (o *remoteCaller) answered(w answerOfCall) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if a := o.waiting[w.ID]; a != nil {
		w.Outcome.By = w.By
		a.Settled("", w.Outcome, w.Fault)
	}
}

// end ends what waits for the hub, which is gone, and what it asked.
func (o *remoteCaller) end(why *core.Fault) {
	o.mu.Lock()
	o.gone = why
	asks := o.asks
	o.asks = map[string]*askFrom{}
	for _, a := range o.waiting {
		a.Settled("", question.Outcome{}, why)
	}
	o.mu.Unlock()
	for _, a := range asks {
		o.engine.questions.Leave(a)
	}
}
