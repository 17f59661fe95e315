package hub

import (
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// WatchQuestions makes Next return the questions that are asked in a conversation, first
// those that are open, and how they end. It replaces the session's view with the same
// tag.
func (s *Session) WatchQuestions(v question.View) {
	s.hub.questions.Watch(s.questionPeer(), v)
	if s.isClosed() { // maybe before the view was there
		s.hub.questions.Leave(s.questionPeer())
	}
}

// UnwatchQuestions ends what WatchQuestions began under the tag.
func (s *Session) UnwatchQuestions(tag any) { s.hub.questions.Unwatch(s.questionPeer(), tag) }

// Questions returns those that wait for an answer that the principal may give, the
// longest waiting first.
func (h *Hub) Questions(p core.Principal) []question.Question {
	all := []question.Question{}
	_ = h.list(p, core.ListQuestions, func() error { // who may not see any sees none
		all = h.questions.List(p)
		return nil
	})
	return all
}

// AnswerQuestion answers a question as the session's principal: see
// [question.Book.Answer].
func (s *Session) AnswerQuestion(r core.Reply) (question.Outcome, error) {
	o, err := s.do(r)
	return o.question, err
}

// questionPeer is a session as the book of questions knows it.
type questionPeer Session

func (s *Session) questionPeer() *questionPeer { return (*questionPeer)(s) }

// Show implements [question.Peer].
func (p *questionPeer) Show(u question.Update) { p.inbox.push(Batch{Question: &u}) }

// Settled implements [question.Peer].
func (p *questionPeer) Settled(call string, o question.Outcome, fault *core.Fault) {
	out := &tool.Result{Fault: fault}
	if fault == nil {
		out = output(o)
	}
	out.Call = call
	p.inbox.push(Batch{Tool: out})
}
