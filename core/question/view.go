package question

import (
	"slices"

	"github.com/dragoman-hub/dragoman/core"
)

// Peer is a connection that asks people or shows them questions. Values are compared
// with ==. Its methods must neither block nor call the Book.
type Peer interface {
	// Show tells of a question that one of the peer's views shows, or of its end. It is called with the
	// lock of the Book held.
	Show(Update)
	// Settled tells the asker how the question with the reference ended: by an outcome, or
	// by a Fault because nobody can be asked or the Book was stopped. It is called without the lock, also
	// several times at once.
	Settled(ref string, o Outcome, fault *core.Fault)
}

// View is a conversation that a peer shows to somebody, with the questions asked in it.
type View struct {
	// Tag distinguishes the views of a peer, and comes with each question.
	Tag any
	// Thread is the conversation, Agent its agent as far as that is known, and For who sees
	// it.
	Thread core.ThreadID
	Agent  core.AgentID
	For    core.Principal
}

// Update is a question that a view is to show, or how it ended.
type Update struct {
	Question Question
	// Tag is that of the view.
	Tag any
	// Outcome is nil while the question is open.
	Outcome *Outcome
}

// place identifies a view in a Book.
type place struct {
	peer Peer
	tag  any
}

// Watch shows the peer the questions of the view's conversation, those that are open first,
// until Unwatch or Leave. It replaces the peer's view with the same tag, and returns it. The caller checks
// afterwards that the peer has not left: see the package documentation.
func (b *Book) Watch(p Peer, v View) (before View, replaced bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := place{p, v.Tag}
	if b.views[p] == nil {
		b.views[p] = map[any]View{}
	}
	before, replaced = b.views[p][v.Tag]
	b.views[p][v.Tag] = v
	for _, q := range b.selected(func(q *pending) bool { return q.isFor(v, b.opts.MayAnswer) }) {
		q.show(at)
	}
	return before, replaced
}

// Unwatch removes a view, and returns it if there was one. Open questions are shown again by another Watch.
func (b *Book) Unwatch(p Peer, tag any) (before View, watched bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, watched = b.views[p][tag]
	b.unwatch(place{p, tag})
	return before, watched
}

// unwatch removes a view. Callers hold mu.
func (b *Book) unwatch(at place) {
	delete(b.views[at.peer], at.tag)
	if len(b.views[at.peer]) == 0 {
		delete(b.views, at.peer)
	}
	for _, q := range b.open {
		delete(q.shown, at)
	}
}

// isFor reports whether the view shows the question: it was asked in the view's thread, or,
// if no view has that thread, by the view's agent.
func (q *pending) isFor(v View, mayAnswer func(p core.Principal, agent core.AgentID, owner core.Principal) bool) bool {
	if q.isOfCall() && q.sources[0].Thread == v.Thread && q.sources[0].From.ID == v.For.ID {
		return true // who calls a tool may always answer it
	}
	ofAgent := q.toAgentViews && q.Agent == v.Agent
	for _, src := range q.sources {
		if (ofAgent || src.Thread == v.Thread) && mayAnswer(v.For, q.Agent, src.From) {
			return true
		}
	}
	return ofAgent && len(q.sources) == 0
}

// isIn reports whether the question was asked for a task of the thread, or for what one has caused.
func (q *pending) isIn(thread core.ThreadID) bool {
	return slices.ContainsFunc(q.sources, func(src Source) bool { return src.Thread == thread })
}

// isOfCall reports whether the question was asked for a call that belongs to no task: it has the thread of that
// call, and is for its principal.
func (q *pending) isOfCall() bool { return len(q.Tasks) == 0 && len(q.sources) > 0 }

// show shows the question to a view, once.
func (q *pending) show(at place) {
	if _, before := q.shown[at]; before {
		return
	}
	q.shown[at] = struct{}{}
	at.peer.Show(Update{Question: q.Question, Tag: at.tag})
}
