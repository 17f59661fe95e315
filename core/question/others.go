package question

import (
	"maps"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
)

// A cluster has a Book at each hub. A question is open in the Book of the hub where it was asked, its
// home; the others show it to their views and list it, and say whom they have for it.

// Word is what the Book of one hub tells that of another, in its stable JSON form. One of its members
// is set.
type Word struct {
	// Asked is a question of the hub that says so.
	Asked *Asked `json:"asked,omitempty"`
	// Shown says whom the hub has for a question of the other one.
	Shown *Shown `json:"shown,omitempty"`
	// Wider is the id of a question that is for all views of conversations with its agent.
	Wider string `json:"wider,omitempty"`
	// Settled is how a question of the hub ended.
	Settled *Settled `json:"settled,omitempty"`
	// Open asks for all questions that are open.
	Open bool `json:"open,omitempty"`
}

// Asked is a question with what says who may see it.
type Asked struct {
	Question Question `json:"question"`
	Sources  []Source `json:"sources,omitempty"`
	// Above are causes of its tasks that the hub which tells does not have. Who hears of it adds
	// their Sources.
	Above []core.TaskID `json:"above,omitempty"`
	Wider bool          `json:"wider,omitempty"`
}

// Shown is whom a hub has for a question.
type Shown struct {
	Question string   `json:"question"`
	To       audience `json:"to"`
}

// Settled is how a question ended.
type Settled struct {
	Question string         `json:"question"`
	Outcome  Outcome        `json:"outcome"`
	By       core.Principal `json:"by,omitzero"`
}

// audience says who is there for a question. The greater one comes first.
type audience uint8

const (
	nobody     audience = iota
	readers             // somebody reads the list of questions
	agentViews          // views of conversations with the agent
	threads             // views of its threads
)

// HubUp makes another hub one that shows questions. It tells of its own when it is asked.
func (b *Book) HubUp(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hubs[name] = struct{}{}
	b.opts.Tell(name, Word{Open: true})
}

// HubGone settles the questions of another hub, and does not wait for what that says of questions.
func (b *Book) HubGone(name string) {
	b.mu.Lock()
	defer b.unlock()
	delete(b.hubs, name)
	for _, q := range b.selected(nil) {
		if q.home == name {
			b.settle(q, Outcome{Reason: core.QuestionLeft}, nil)
		} else {
			b.heard(q, name, nobody)
		}
	}
}

// Home returns the hub where a question was asked, "" for this one. It returns the errors of
// [Book.Answer].
func (b *Book) Home(by core.Principal, r core.Reply) (hub string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q, _, err := b.check(by, r, false)
	if err != nil {
		return "", err
	}
	return q.home, nil
}

// AnswerFrom is [Book.Answer] for a principal of another hub, where [Book.Home] has found that it may
// answer.
func (b *Book) AnswerFrom(by core.Principal, r core.Reply) (Outcome, error) {
	b.mu.Lock()
	defer b.unlock()
	q, o, err := b.check(by, r, true)
	if err == nil {
		b.settle(q, o, nil)
	}
	return o, err
}

// tell tells all other hubs. Callers hold mu.
func (b *Book) tell(w Word) {
	for _, name := range slices.Sorted(maps.Keys(b.hubs)) {
		b.opts.Tell(name, w)
	}
}

// Hear takes what the Book of another hub says.
func (b *Book) Hear(from string, w Word) {
	b.mu.Lock()
	defer b.unlock()
	switch {
	case w.Asked != nil:
		b.hearAsked(from, *w.Asked)
	case w.Shown != nil:
		b.heard(b.open[w.Shown.Question], from, w.Shown.To)
	case w.Wider != "":
		if q := b.open[w.Wider]; q != nil && q.home == from {
			b.showWider(q)
		}
	case w.Settled != nil:
		if q := b.open[w.Settled.Question]; q != nil && q.home == from {
			o := w.Settled.Outcome
			o.By = w.Settled.By
			b.settle(q, o, nil)
		}
	case w.Open:
		for _, q := range b.selected(func(q *pending) bool { return q.home == "" }) {
			b.opts.Tell(from, Word{Asked: q.asked()})
		}
	}
}

func (q *pending) asked() *Asked {
	return &Asked{Question: q.Question, Sources: q.sources, Above: q.above, Wider: q.toAgentViews}
}

// hearAsked shows a question of another hub, and says whom this hub has for it. Callers hold mu.
func (b *Book) hearAsked(from string, a Asked) {
	id := a.Question.ID
	if _, settled := b.settled.Get(id); settled || b.open[id] != nil {
		return // it was told before
	}
	q := &pending{Question: a.Question, home: from, sources: a.Sources, shown: map[place]struct{}{}}
	b.open[id] = q
	b.show(q)
	to := threads
	if len(q.shown) == 0 {
		to = b.wider(q)
	}
	b.opts.Tell(from, Word{Shown: &Shown{id, to}})
	if a.Wider {
		b.showWider(q)
	}
}

// wider returns who is there for a question that no view of its threads shows. Callers hold mu.
func (b *Book) wider(q *pending) audience {
	q.toAgentViews = !q.isOfCall()
	defer func() { q.toAgentViews = false }()
	for _, views := range b.views {
		for _, v := range views {
			if q.isFor(v, b.opts.MayAnswer) {
				return agentViews
			}
		}
	}
	if b.isAttended(q) {
		return readers
	}
	return nobody
}

// showWider shows a question to all views of conversations with its agent, unless it belongs to a call. Callers hold mu.
func (b *Book) showWider(q *pending) {
	q.toAgentViews = !q.isOfCall()
	b.show(q)
}

// ask tells the other hubs of a question, and notes whether it waits for what they say. Callers hold
// mu.
func (b *Book) ask(q *pending) {
	if len(q.shown) == 0 {
		q.awaits = maps.Clone(b.hubs)
	}
	b.tell(Word{Asked: q.asked()})
}

// heard notes whom a hub has for a question. Once all have said it and none has views of its threads, all
// views of its agent show it; a question for which nobody is anywhere is settled. Callers hold mu.
func (b *Book) heard(q *pending, from string, to audience) {
	if q == nil || q.home != "" {
		return
	}
	if _, awaited := q.awaits[from]; !awaited {
		return
	}
	q.audience = max(q.audience, to)
	if delete(q.awaits, from); q.audience == threads || len(q.shown) > 0 {
		q.awaits = nil
	}
	if len(q.awaits) > 0 || q.audience == threads || len(q.shown) > 0 {
		return
	}
	b.showWider(q)
	if len(q.shown) == 0 && q.audience == nobody && !b.isAttended(q) {
		b.settle(q, Outcome{Reason: core.QuestionLeft}, unattended(q.Agent))
		return
	}
	b.tell(Word{Wider: q.ID})
}
