package hub

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// Question is what an agent asks the people who look at its conversation.
type Question struct {
	// ID names it: letters, digits and dashes.
	ID    string       `json:"id"`
	Agent core.AgentID `json:"agent"`
	// Tasks are those that the agent works on, if any. The question ends with the
	// last of them.
	Tasks []core.TaskID `json:"tasks"`
	// Text is what is asked, Header a word or two about what it concerns.
	Text   string `json:"question"`
	Header string `json:"header,omitempty"`
	// Options are what there is to choose from: one, or with Several any. Without
	// options the answer is a text.
	Options []Option `json:"options,omitempty"`
	Several bool     `json:"multi_select,omitempty"`
	// Since is when it was asked, Until when nobody's answer is waited for any more.
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
}

// Option is one thing to choose.
type Option struct {
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
}

// Reply is what a person says to a question: labels of its options, a text of his
// own, both, or that he will not answer.
type Reply struct {
	Selected  []string
	Text      string
	Dismissed bool
}

// Given is how a question ended, and what the tool tells the agent of it.
type Given struct {
	Answered bool     `json:"answered"`
	Selected []string `json:"selected,omitempty"`
	Text     string   `json:"custom_text,omitempty"`
	// Reason says why there is no answer.
	Reason string `json:"reason,omitempty"`
	// By is who answered.
	By core.Principal `json:"-"`
}

// String says the answer in words: what was selected and the person's own text, or
// the reason why there is none.
func (g Given) String() string {
	said := slices.Clone(g.Selected)
	if g.Text != "" {
		said = append(said, g.Text)
	}
	if g.Reason != "" {
		said = append(said, g.Reason)
	}
	return strings.Join(said, ", ")
}

// The reasons why a question has no answer.
const (
	reasonTimeout   = "timeout"
	reasonDismissed = "dismissed"
	reasonTaskEnded = "task_ended"
	reasonLeft      = "left"
)

// QuestionObserver is an Observer that sees questions too, under the same rules.
// Every question that was asked is settled once.
type QuestionObserver interface {
	Asked(Question)
	Settled(id string)
}

// questions are those that agents wait with, and where they can be shown. Its mu is
// locked last, but for those of inboxes.
type questions struct {
	hub      *Hub
	observer QuestionObserver // nil for none

	mu      sync.Mutex
	open    map[string]*asked
	byTask  map[core.TaskID][]*asked
	sights  map[*Session]map[any]Sight
	settled []string // the latest that are not open any more
	stopped *core.Fault
}

// asked is a question until it is settled.
type asked struct {
	Question
	caller *Session
	call   string
	// within are the threads that it was asked in: those of its tasks, and of the
	// tasks that stand above them.
	within []source
	tasks  map[core.TaskID]struct{} // that have not ended
	// anywhere says that nobody looked at these, so that it was put to who looks at
	// any conversation with the agent.
	anywhere bool
	shown    map[place]struct{}
	timer    *time.Timer
}

// source is a thread, and who asked there.
type source struct {
	thread core.ThreadID
	from   core.Principal
}

func newQuestions(h *Hub) questions {
	watch, _ := h.observer.(QuestionObserver)
	return questions{
		hub: h, observer: watch, open: map[string]*asked{}, byTask: map[core.TaskID][]*asked{}, sights: map[*Session]map[any]Sight{},
	}
}

// put opens a question, or returns a Fault when it cannot be put to anybody.
func (qs *questions) put(q *asked, tasks []*Task) error {
	for _, t := range tasks {
		qs.bind(q, t.ID())
		if t.HasEnded() { // when it ends later it looks for what is bound to it
			qs.taskEnded(t.ID())
		}
	}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if err := qs.admit(q, len(tasks) > 0); err != nil {
		qs.unbind(q)
		return err
	}
	qs.open[q.ID] = q
	q.timer = time.AfterFunc(time.Until(q.Until), func() {
		qs.mu.Lock()
		defer qs.mu.Unlock()
		qs.settle(q, Given{Reason: reasonTimeout}, nil)
	})
	if qs.observer != nil {
		qs.observer.Asked(q.Question)
	}
	return nil
}

// admit shows a question to whoever can see it. Callers hold mu.
func (qs *questions) admit(q *asked, tasked bool) error {
	switch {
	case qs.stopped != nil:
		return qs.stopped
	case tasked && len(q.tasks) == 0:
		return core.NewFault(core.CodeCancelled, "the task has ended")
	case len(qs.open) >= qs.hub.limits.Questions:
		qs.hub.Count("refused.question")
		return core.NewFault(core.CodeOverloaded, "%d questions wait for people: ask again later", len(qs.open))
	}
	for _, anywhere := range []bool{false, true} {
		for s, sights := range qs.sights {
			for tag, at := range sights {
				if in, with := qs.sees(at, q); in || with && anywhere {
					q.show(s, tag)
				}
			}
		}
		if q.anywhere = anywhere; len(q.shown) > 0 {
			return nil
		}
	}
	return core.NewFault(core.CodeUnsupported, "failed to send question: no connected clients for agent %s", q.Agent)
}

func (qs *questions) bind(q *asked, id core.TaskID) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q.tasks[id] = struct{}{}
	qs.byTask[id] = append(qs.byTask[id], q)
}

// unbind forgets a question at all its tasks. Callers hold mu.
func (qs *questions) unbind(q *asked) {
	for id := range q.tasks {
		left := slices.DeleteFunc(qs.byTask[id], func(other *asked) bool { return other == q })
		if qs.byTask[id] = left; len(left) == 0 {
			delete(qs.byTask, id)
		}
	}
}

// taskEnded ends the questions that were asked for a task which ends or goes to
// another agent, and for no other that goes on.
func (qs *questions) taskEnded(id core.TaskID) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	bound := qs.byTask[id]
	delete(qs.byTask, id)
	for _, q := range bound {
		if delete(q.tasks, id); len(q.tasks) == 0 {
			qs.settle(q, Given{Reason: reasonTaskEnded}, nil)
		}
	}
}

// leave forgets a session that closes: what it looked at, and what it asked.
func (qs *questions) leave(s *Session) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	delete(qs.sights, s)
	for _, q := range qs.sorted() {
		if q.caller == s {
			qs.settle(q, Given{Reason: reasonLeft}, nil)
		}
	}
}

// stop ends all of them: the hub has stopped.
func (qs *questions) stop(reason *core.Fault) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	qs.stopped = reason
	for _, q := range qs.sorted() {
		qs.settle(q, Given{Reason: reasonLeft}, reason)
	}
}

// settle answers the agent, with what was given or the fault, and tells everybody to
// whom the question was put. It does nothing for one that is not open. Callers hold
// mu.
func (qs *questions) settle(q *asked, g Given, fault *core.Fault) {
	if qs.open[q.ID] != q {
		return
	}
	delete(qs.open, q.ID)
	qs.unbind(q)
	q.timer.Stop()
	if most := qs.hub.limits.Questions; len(qs.settled) >= most {
		qs.settled = slices.Delete(qs.settled, 0, len(qs.settled)-most+1)
	}
	qs.settled = append(qs.settled, q.ID)
	o := &ToolOutput{Call: q.call, Fault: fault}
	if fault == nil {
		b, err := json.Marshal(g)
		if err != nil {
			panic(err) // texts always marshal
		}
		o.Output = b
	}
	q.caller.inbox.pushTool(o)
	for p := range q.shown {
		p.sess.inbox.pushAsking(&Asking{Question: q.Question, Tag: p.tag, Given: &g})
	}
	if qs.observer != nil {
		qs.observer.Settled(q.ID)
	}
}

// sorted returns what is open, the longest waiting first. Callers hold mu.
func (qs *questions) sorted() []*asked {
	all := make([]*asked, 0, len(qs.open))
	for _, q := range qs.open {
		all = append(all, q)
	}
	slices.SortFunc(all, func(a, b *asked) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID)) })
	return all
}

// may reports whether the principal may read and answer the question: whoever may
// read a task that it was asked for, or was shown it.
func (qs *questions) may(p core.Principal, q *asked) bool {
	for _, src := range q.within {
		if qs.hub.rules.MayRead(p, src.from) {
			return true
		}
	}
	for at := range q.shown {
		if qs.sights[at.sess][at.tag].For.ID == p.ID {
			return true
		}
	}
	return p.Operator
}

// Questions returns those that wait for an answer that the principal may give, the
// longest waiting first.
func (h *Hub) Questions(p core.Principal) []Question {
	qs := &h.questions
	qs.mu.Lock()
	defer qs.mu.Unlock()
	all := []Question{}
	for _, q := range qs.sorted() {
		if qs.may(p, q) {
			all = append(all, q.Question)
		}
	}
	return all
}

// AnswerQuestion answers a question. The first answer counts: a later one is a
// conflict Fault, one to what nobody asked an unknown_task Fault. An answer that does
// not fit the question is an invalid Fault, and leaves it open.
func (s *Session) AnswerQuestion(id string, r Reply) (Given, error) {
	qs := &s.hub.questions
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.open[id]
	switch {
	case q == nil && slices.Contains(qs.settled, id):
		return Given{}, core.NewFault(core.CodeConflict, "question %s has been settled", id)
	case q == nil:
		return Given{}, core.NewFault(core.CodeUnknownTask, "no question %q waits for an answer", id)
	case !qs.may(s.identity.Principal, q):
		return Given{}, core.NewFault(core.CodeNotAuthorized, "question %s is put to somebody else", id)
	}
	if err := q.check(r); err != nil {
		return Given{}, err
	}
	g := Given{Answered: true, Selected: r.Selected, Text: r.Text, By: s.identity.Principal}
	if r.Dismissed {
		g = Given{Reason: reasonDismissed, By: s.identity.Principal}
	}
	qs.settle(q, g, nil)
	return g, nil
}
