package pi

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// run is a prompt under way and the messages queued after it: a series of steps, each a
// task of the hub.
type run struct {
	session *session
	prompt  *request // nil of a run that shows the task of somebody else
	// steps are in order. The last is under way.
	steps    []*step
	messages []conversation.Message // of the run so far
	aborted  bool
	retrying retrying

	inline runStorage
}

// runStorage is the memory of a run of one question and one answer, which most are.
type runStorage struct {
	step     step
	steps    [1]*step
	messages [2]conversation.Message
}

// newRun returns a run that has not begun.
func newRun(ss *session, prompt *request) *run {
	r := &run{session: ss, prompt: prompt}
	r.steps, r.messages = r.inline.steps[:0], r.inline.messages[:0]
	return r
}

// newStep returns an empty step. [step.open] adds it to the run.
func (r *run) newStep() *step {
	if len(r.steps) == 0 {
		return &r.inline.step
	}
	return &step{}
}

func (r *run) last() *step { return r.steps[len(r.steps)-1] }

// step is one turn of the user, and the task that answers it.
type step struct {
	run *run
	// before is the step before this one, or nil. Clients get it first.
	before *step
	input  []userMessage
	// opening has the frames that clients get before the events of the task.
	opening [][]byte
	task    *task.Task         // nil if the hub refused it, or answers itself
	foreign bool               // somebody else opened the task
	seen    core.Cursor        // up to where the task was handled
	answer  func(*render.View) // renders a step without a task
	// record makes the messages of the session.
	record render.View
	// from is the index of the answer in the messages of the run, and leaf the entry of the
	// conversation that it follows.
	from int
	leaf *conversation.Node
	// steered are the messages injected into the task, by the id of the injection.
	steered map[string]userMessage
}

// size is how many bytes a waiting step holds in memory: its opening and the request of its
// task. The answer is counted with the agent_end that follows.
func (st *step) size() int {
	n := 0
	for _, frame := range st.opening {
		n += len(frame)
	}
	if st.task != nil {
		n += st.task.Request().Size()
	}
	return n
}

// addInjected notes that a message of the user was injected into the task.
func (st *step) addInjected(injection string, q userMessage) {
	if st.steered == nil {
		st.steered = map[string]userMessage{}
	}
	st.steered[injection] = q
}

// ask opens a task for messages of the user. It returns the Fault of the hub, or of an open
// circuit.
func (ss *session) ask(input []userMessage, deadline time.Time) (*task.Task, error) {
	s := ss.server
	req := core.Request{Intent: core.IntentAsk, To: ss.agent, Thread: ss.thread, History: ss.priorHistory(), Deadline: deadline}
	if req.To.IsZero() {
		req.To = core.ToAny()
	}
	call, err := s.beginCall(input[0].from, req.To)
	if err != nil {
		return nil, err
	}
	texts := ss.unreported.paragraphs()
	for _, q := range input {
		texts = append(texts, q.text)
		req.Attachments = append(req.Attachments, q.images...)
	}
	req.Content = strings.Join(texts, "\n\n")
	req.Context = thinkingContext(ss.tree.Level)
	task, err := s.openTask(req, hub.OpenOptions{For: requester(input[0].from), Keep: true, Unwatched: true, DefaultDeadline: true, Trace: input[0].trace}, ss.knowsAgent(req.To))
	if err != nil {
		s.circuits.Bind(call, "")
		return nil, err
	}
	s.circuits.Bind(call, task.ID())
	ss.unreported = unreportedBash{}
	if with := s.threads[ss.thread]; with != nil && len(with.sessions) > 1 {
		with.shareTask(ss, task)
	}
	return task, nil
}

// begin adds a step to the run. Without a task, answer renders the answer.
func (r *run) begin(input []userMessage, task *task.Task, answer func(*render.View)) *step {
	now := time.Now().UnixMilli()
	before := len(r.messages)
	for _, q := range input {
		r.addMessage(conversation.UserMessage(q.text, q.images, now))
	}
	st := r.newStep()
	st.run, st.input, st.task, st.answer = r, input, task, answer
	st.open(r.messages[before:])
	return st
}

// open adds a step to its run. asked are the messages that it begins with, which the run
// already has: none for a step that is a retry.
func (st *step) open(asked []conversation.Message) {
	s := st.run.session.server
	r := st.run
	if len(r.steps) > 0 {
		st.before = r.last()
	}
	runBegins := len(r.steps) == 0 || len(asked) == 0 // a retry begins the run again
	st.opening = r.session.envelope.Opening(asked, runBegins)
	st.from, st.leaf = len(r.messages), r.session.tree.Leaf
	r.steps = append(r.steps, st)
	if st.task == nil {
		st.record.Begin(r.session.renderTask(""), nil, 0)
		st.answer(&st.record)
	} else {
		id := st.task.ID()
		rendered := r.session.renderTask(id)
		others := s.runs[id]
		if len(others) == 0 {
			rendered.Count = s.rendering.Count // only here: once for all views of the task
		}
		st.record.Begin(rendered, nil, 0)
		s.runs[id] = append(others, st)
		_ = s.root.Watch(st.task, core.Cursor{}, st) // the beginning is a cursor of every task
	}
	r.session.subscribers.sendStep(st)
}

// follow handles the events of the step's task.
func (st *step) follow(events []core.Event) {
	s := st.run.session.server
	ss := st.run.session
	for _, e := range events {
		e, news := e.After(st.seen)
		if !news {
			continue
		}
		st.seen = e.Cursor()
		_ = e.Deliver(&st.record) // a view returns no error
		st.takeMessages()
		if !st.foreign {
			s.circuits.Observe(st.task.ID(), e)
		}
		switch b := e.Body.(type) {
		case core.Assigned:
			if !st.foreign || ss.agent.IsZero() {
				ss.bindToAssigned(b.Agent)
			}
		case core.SessionLost:
			delete(ss.informedAgents, st.record.Agent())
		case core.InjectionAnswered:
			if q, here := st.steered[b.ID]; here && !b.Accepted {
				ss.queue.steering = append(ss.queue.steering, q)
				ss.queueChanged()
			}
		case core.Done:
			st.end(command.Outcome{}, "")
		case core.Cancelled:
			st.end(command.Outcome{}, render.RetryCancelled)
		case core.Failed:
			st.failed(e, b)
		}
	}
}

// failed ends a step whose task has failed, unless it is tried again.
func (st *step) failed(e core.Event, b core.Failed) {
	o := command.Outcome{}
	if !st.foreign {
		o = st.timedOut(e, b)
	}
	if o.Err != "" || st.foreign || !st.compactAndRetry(b.Fault) && !st.retry(b.Fault) {
		st.end(o, render.FaultMessage(b.Fault))
	}
}

// timedOut returns the outcome of a prompt whose task failed: a failure of the command
// only if the hub ended the task, at its deadline (facts, section 3.5) or because its agent was silent. Neither is
// tried again.
func (st *step) timedOut(e core.Event, b core.Failed) command.Outcome {
	if b.Fault == nil || b.Fault.Code != core.CodeTimeout {
		return command.Outcome{}
	}
	after := st.run.session.server.opts.Commands.PromptTimeout
	if e.At.Before(st.task.Deadline()) {
		began, silent := st.endedBySilence()
		if !silent {
			return command.Outcome{}
		}
		after = e.At.Sub(began)
	}
	return command.Outcome{Err: fmt.Sprintf("Command 'prompt' timed out after %dms", after.Milliseconds()), TimedOut: true}
}

// endedBySilence reports whether the hub ended the task because its agent was silent, and when it began.
func (st *step) endedBySilence() (began time.Time, silent bool) {
	log := st.task.Log()
	for e := range log.Backward() {
		if b, ok := e.Body.(core.CancelRequested); ok {
			return log.At(0).At, b.By == hubName && b.Reason == task.ReasonSilence
		}
	}
	return began, false
}

// end ends a step. The run goes on with the next queued message; without one, or with a
// problem, it ends.
func (st *step) end(o command.Outcome, problem string) {
	s := st.run.session.server
	r := st.run
	ss := r.session
	more := problem == ""
	if more {
		r.endRetries("")
	}
	for more && !r.aborted && !ss.deleted {
		q, ok := ss.queue.next()
		if !ok {
			break
		}
		ss.subscribers.sendAfter(r.last(), ss.queue.frame(ss.envelope))
		task, err := ss.ask([]userMessage{q}, time.Now().Add(s.opts.Commands.PromptTimeout))
		if err == nil {
			r.begin([]userMessage{q}, task, nil)
			return
		}
		at, fault := time.Now(), core.AsFault(err)
		r.begin([]userMessage{q}, nil, func(v *render.View) {
			_ = v.Failed(core.Event{At: at}, core.Failed{Fault: fault}) // a view returns no error
		}).takeMessages()
		more = false
	}
	r.endRun()
	r.endRetries(problem)
	r.closeRun()
	if problem != "" || !r.compactAfter() {
		r.finish(o)
	}
}

// cutOff ends a step whose task has no more events because the hub stopped. A task of another hub goes on without an end
// here: text alone has not woken the reader.
func (st *step) cutOff() {
	if st.follow(st.task.Events()); st.run.session.run != st.run || st.run.last() != st { // that had its end
		return
	}
	_ = st.record.Failed(core.Event{At: time.Now()}, core.Failed{Fault: errCutOff}) // a view returns no error
	st.takeMessages()
	st.end(command.Outcome{}, render.FaultMessage(errCutOff))
}

// addMessage adds a message to the run and to the conversation of its session.
func (r *run) addMessage(m conversation.Message) {
	r.messages = append(r.messages, m)
	r.session.file.Append(r.session.tree.AppendMessage(m))
}

// takeMessages adds the completed messages of the step to its run.
func (st *step) takeMessages() {
	for _, m := range st.record.TakeMessages() {
		st.run.addMessage(m)
	}
}

// finish ends the turn of the run in its lane.
func (r *run) finish(o command.Outcome) {
	s := r.session.server
	if r.prompt != nil {
		r.prompt.Finish(o)
		return
	}
	s.engine.EndTurn(r.session.key)
}

// endRun sends agent_end to each client once it has all of the run.
func (r *run) endRun() {
	r.session.subscribers.sendAfter(r.last(), r.session.envelope.AgentEnd(r.messages[r.retrying.since:]))
}

// closeRun leaves the session idle. For a client that has not received all of the run, what
// is sent next waits behind a fence.
func (r *run) closeRun() {
	s := r.session.server
	ss := r.session
	ss.run = nil
	for _, c := range ss.subscribers {
		c.out.runEnded(r)
	}
	for _, st := range r.steps {
		if st.task == nil {
			continue
		}
		id := st.task.ID()
		rest := slices.DeleteFunc(s.runs[id], func(other *step) bool { return other == st })
		if len(rest) == 0 {
			delete(s.runs, id)
		} else {
			s.runs[id] = rest
		}
	}
}
