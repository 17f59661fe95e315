package hub

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/rpc"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// WatchQuestions makes Next return the questions of a conversation, those that are open
// first, and how they end. It replaces the session's view with the same tag. It fails as [Session.Follow] does.
func (s *Session) WatchQuestions(v question.View) error {
	if err := v.Thread.Check(); err != nil {
		return err
	}
	if err := s.register(names(v)); err != nil {
		return err
	}
	if before, replaced := s.hub.questions.Watch(s.peer(), v); replaced {
		s.unregister(names(before))
	}
	if s.Closed() { // maybe before the view was there
		s.hub.questions.Leave(s.peer())
		s.unregisterAll()
	}
	return nil
}

// names returns how long the names in a view are.
func names(v question.View) int { return len(v.Thread) + len(v.Agent) }

// WatchOwnQuestions makes Next return what the tools of packs ask that the session calls, if it works
// on no task, and how that ends. Its principal, and who may answer in its name, may answer; without
// this such a tool can ask nobody. It is called before the session calls a tool.
func (s *Session) WatchOwnQuestions() {
	s.asksIn = core.ThreadID(core.NewID())
	_ = s.WatchQuestions(question.View{Tag: ownQuestions{}, Thread: s.asksIn, For: s.identity.Principal}) // else its tools are told that they can ask nobody
}

// ownQuestions is the tag of the view of a session that shows what its calls ask.
type ownQuestions struct{}

// UnwatchQuestions ends the view with the tag.
func (s *Session) UnwatchQuestions(tag any) {
	if v, watched := s.hub.questions.Unwatch(s.peer(), tag); watched {
		s.unregister(names(v))
	}
}

// Questions returns the open questions that the principal may answer, of all hubs, the longest
// waiting first.
func (h *Hub) Questions(p core.Principal) []question.Question { return h.questionsIn(p, "") }

// questionsIn is Questions for one thread; for all if that is "".
func (h *Hub) questionsIn(p core.Principal, thread core.ThreadID) []question.Question {
	all := []question.Question{}
	_ = h.list(p, core.ListQuestions, func() error { // without the right the list is empty
		all = h.questions.List(p, thread)
		return nil
	})
	return all
}

// ReadQuestions is [Hub.Questions] for somebody who reads them now: questions that come soon wait
// for the principal, although no session shows them. See [question.Book.Attend]. With a thread it returns
// those of the thread alone: see [question.Book.List]. Missing are the hubs whose questions are not among them.
func (h *Hub) ReadQuestions(p core.Principal, thread core.ThreadID) (all []question.Question, missing []string) {
	h.questions.Attend(p, thread)
	_, missing, _ = h.node.Names()
	return h.questionsIn(p, thread), missing
}

// AnswerQuestion answers a question as the session's principal: see
// [question.Book.Answer]. It waits for the hub where the question was asked, if that is another
// one. If ctx ends before that, the answer may count all the same.
func (s *Session) AnswerQuestion(ctx context.Context, r core.Reply) (question.Outcome, error) {
	o, err := s.hub.do(ctx, s, core.Call{Principal: s.identity.Principal, Command: r}, nil)
	return o.question, err
}

// newsOfQuestions is what the books of questions tell each other.
const newsOfQuestions rpc.News[question.Word] = "questions"

func (h *Hub) hearQuestion(from string, w question.Word) {
	if w.Asked != nil {
		for _, id := range w.Asked.Above {
			more, _ := h.sources(h.tasks.Get(id))
			w.Asked.Sources = append(w.Asked.Sources, more...)
		}
	}
	h.questions.Hear(from, w)
}

func (h *Hub) tellQuestion(hub string, w question.Word) {
	if w.Settled != nil && newsOfQuestions.Tell(h, hub, w) != nil {
		short := *w.Settled // it is no longer open
		short.Outcome.Selected, short.Outcome.Text, short.Outcome.Content = nil, "", nil
		w.Settled = &short
	} else if w.Settled != nil {
		return
	}
	newsOfQuestions.TellEach(h, []string{hub}, w)
}

// answersToQuestions asks the hub where a question was asked to take an answer.
const answersToQuestions rpc.Method[core.Reply, question.Outcome] = "questions.answer"

func (h *Hub) answerQuestion(ctx context.Context, by core.Principal, r core.Reply) (question.Outcome, error) {
	home, err := h.questions.Home(by, r)
	switch {
	case err != nil:
		return question.Outcome{}, err
	case home == "":
		return h.questions.Answer(by, r)
	}
	o, err := answersToQuestions.Ask(ctx, h, home, by, r)
	o.By = by
	return o, err
}

// Show implements [question.Peer].
func (p *peer) Show(u question.Update) { p.inbox.push(Batch{Question: &u}) }

// Settled implements [question.Peer].
func (p *peer) Settled(call string, o question.Outcome, fault *core.Fault) {
	out := &tool.Result{Fault: fault}
	if fault == nil {
		out = output(o)
	}
	out.Call = call
	p.inbox.push(Batch{Tool: out})
}

// The tool with which an agent that declared the capability asks people, as agents of the
// existing Coven gateway know it.
const (
	askUserCapability = "ui"
	maxAskUser        = 300 * time.Second
	maxQuestionBytes  = 64 << 10
)

var askUserTool = tool.Definition{
	Name:        "ask_user",
	Description: "Ask the people who talk with you a question, and wait for what they choose, or say where there is nothing to choose from.",
	InputSchema: schema(`"question":{"type":"string","minLength":1},`+
		`"options":{"type":"array","minItems":1,"maxItems":100,"items":{"type":"object","properties":{"label":{"type":"string","minLength":1},"description":{"type":"string"}},"required":["label"],"additionalProperties":false}},`+
		`"multi_select":{"type":"boolean"},"header":{"type":"string"},`+
		`"timeout_seconds":{"type":"integer","minimum":1,"maximum":300}`, "question"),
	Timeout:  maxAskUser + 10*time.Second,
	Requires: []string{askUserCapability},
}

type askUserInput struct {
	Question       string        `json:"question"`
	Options        []core.Option `json:"options"`
	MultiSelect    bool          `json:"multi_select"`
	Header         string        `json:"header"`
	TimeoutSeconds *int          `json:"timeout_seconds"`
}

// question returns the question of the input, with the timeout if it names none.
func (in askUserInput) question(timeout time.Duration) (question.Question, error) {
	q := question.Question{
		ID: core.NewID(), Text: in.Question, Header: in.Header, Options: in.Options, Several: in.MultiSelect, Since: time.Now(),
	}
	if err := q.Check(); err != nil {
		return q, core.NewFault(core.CodeInvalid, "invalid input: %s", core.AsFault(err).Message)
	}
	if n := in.TimeoutSeconds; n != nil {
		if timeout = time.Duration(*n) * time.Second; timeout < time.Second || timeout > maxAskUser {
			return q, core.NewFault(core.CodeInvalid, "invalid input: timeout_seconds: want 1 to 300")
		}
	}
	q.Until = q.Since.Add(timeout)
	return q, nil
}

// runAskUser puts the question to people. The result follows with their answer.
func runAskUser(s *Session, call string, raw json.RawMessage) (*tool.Result, error) {
	var in askUserInput
	if err := readInput(raw, &in); err != nil {
		return nil, err
	}
	if len(raw) > maxQuestionBytes {
		return nil, core.NewFault(core.CodeTooLarge, "the question has %d bytes, the limit is %d: shorten it", len(raw), maxQuestionBytes)
	}
	q, err := in.question(s.questionTimeout())
	if err != nil {
		return nil, err
	}
	q.Agent = s.AgentID()
	request := question.Request{Question: q, Asker: s.peer(), Ref: call}
	agent := s.root()
	tasks, err := agent.tasksOf(call, s.callsFor())
	if err != nil {
		return nil, err
	}
	request.Tasks = s.hub.allQuestioned(tasks, agent)
	err = s.hub.putQuestion(request, agent)
	if s.Closed() { // maybe before the question was put
		s.hub.questions.Leave(s.peer())
	}
	return nil, err
}

// questioned returns a task of the agent for which people are asked.
func (h *Hub) questioned(t *task.Task, agent *Session) question.Task {
	sources, above := h.sources(t)
	return question.Task{
		ID: t.ID(), Sources: sources, Above: above, Working: func() bool { return !t.HasEnded() && t.Worker() == agent.peer() },
	}
}

func (h *Hub) allQuestioned(tasks []*task.Task, agent *Session) []question.Task {
	var all []question.Task
	for _, t := range tasks {
		all = append(all, h.questioned(t, agent))
	}
	return all
}

// putQuestion puts a question to people, for tasks of the agent. They show it before anybody is asked.
func (h *Hub) putQuestion(r question.Request, agent *Session) error {
	asked := r.Question.Event()
	tasks := make([]core.TaskID, 0, len(r.Tasks))
	for _, t := range r.Tasks {
		if job := h.tasks.Get(t.ID); job != nil {
			_ = job.Ask(agent.peer(), asked) // the book says itself which tasks the agent has
			tasks = append(tasks, t.ID)
		}
	}
	err := h.questions.Put(r)
	if err != nil {
		h.questionSettled(r.Question, tasks, question.Outcome{}, core.AsFault(err))
	}
	if errors.Is(err, &core.Fault{Code: core.CodeOverloaded}) {
		h.Count("refused.question")
	}
	return err
}

// questionSettled says in tasks how a question of theirs ended.
func (h *Hub) questionSettled(q question.Question, tasks []core.TaskID, o question.Outcome, fault *core.Fault) {
	settled := o.Event(q.ID)
	if fault != nil {
		settled.Reason = string(fault.Code)
	}
	for _, id := range tasks {
		if t := h.tasks.Get(id); t != nil {
			t.Settle(settled)
		}
	}
}

// AskPeople puts a question of the agent to the people of one of its tasks, and waits for
// what they say. Of the question the text, the header, the options, the form and a limit of time are
// read; without a limit it is that of the hub. AskPeople returns an invalid Fault for a
// question that does not fit, an unsupported Fault where nobody can be shown it, a
// not_authorized Fault for a task that the session does not have, and the cause of ctx.
func (s *Session) AskPeople(ctx context.Context, id core.TaskID, q question.Question) (question.Outcome, error) {
	s.mu.Lock()
	w := s.work[id]
	s.mu.Unlock()
	if w == nil {
		return question.Outcome{}, s.hub.notHeld(s, id)
	}
	return s.hub.askPeople(ctx, q, s, w.job.Task)
}

func (h *Hub) askPeople(ctx context.Context, q question.Question, agent *Session, t *task.Task) (question.Outcome, error) {
	q, err := h.complement(q, agent.AgentID())
	if err != nil {
		return question.Outcome{}, err
	}
	a := &asking{settled: make(chan settled, 1)}
	if err := h.putQuestion(question.Request{Question: q, Asker: a, Tasks: []question.Task{h.questioned(t, agent)}}, agent); err != nil {
		return question.Outcome{}, err
	}
	defer h.questions.Leave(a)
	return a.wait(ctx)
}

// complement returns a question with what the hub says of it. It returns an invalid Fault for one that
// nobody could answer.
func (h *Hub) complement(q question.Question, agent core.AgentID) (question.Question, error) {
	q.ID, q.Agent, q.Since = core.NewID(), agent, time.Now()
	if q.Until.IsZero() {
		q.Until = q.Since.Add(h.limits.QuestionTimeout)
	}
	return q, q.Check()
}

// wait waits for the outcome, or until ctx ends, whose cause it returns.
func (a *asking) wait(ctx context.Context) (question.Outcome, error) {
	select {
	case got := <-a.settled:
		if got.fault != nil {
			return question.Outcome{}, got.fault
		}
		return got.outcome, nil
	case <-ctx.Done():
		return question.Outcome{}, context.Cause(ctx)
	}
}

// asking waits for the outcome of one question.
type asking struct{ settled chan settled }

// settled is how a question ended.
type settled struct {
	outcome question.Outcome
	fault   *core.Fault
}

// Show implements [question.Peer].
func (*asking) Show(question.Update) {}

// Settled implements [question.Peer].
func (a *asking) Settled(_ string, o question.Outcome, fault *core.Fault) {
	select {
	case a.settled <- settled{o, fault}:
	default: // it was settled before
	}
}

// sources returns the threads of a task and of its causes, as far as they are in memory, and the first
// cause that is not.
func (h *Hub) sources(t *task.Task) (all []question.Source, above core.TaskID) {
	for t != nil {
		r := t.Request()
		all = append(all, question.Source{Thread: r.Thread, From: t.From()})
		t, above = h.tasks.Get(r.Cause), r.Cause
	}
	return all, above
}
