package pi

import (
	"encoding/base64"
	"errors"
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

// run is one prompt under way with everything that was queued behind it: a series
// of steps, each a task of the hub.
type run struct {
	session *session
	prompt  *request // nil of one that began with what somebody else has asked
	// steps are in order; the last is under way.
	steps    []*step
	messages []conversation.Message // of the run so far
	aborted  bool
	retrying retrying

	few runRoom
}

// runRoom is the memory of a run with one question and one answer, as most are.
type runRoom struct {
	step     step
	steps    [1]*step
	messages [2]conversation.Message
}

// newRun returns a run that has not begun.
func newRun(ss *session, prompt *request) *run {
	r := &run{session: ss, prompt: prompt}
	r.steps, r.messages = r.few.steps[:0], r.few.messages[:0]
	return r
}

// newStep returns a step to fill in, which open adds to the run.
func (r *run) newStep() *step {
	if len(r.steps) == 0 {
		return &r.few.step
	}
	return &step{}
}

func (r *run) last() *step { return r.steps[len(r.steps)-1] }

// step is one turn of the user and the task that answers it.
type step struct {
	run *run
	// before is the step before this one, or nil: it is told first.
	before *step
	said   []queued
	// opening is what clients are told before the task's own events.
	opening [][]byte
	task    *task.Task         // nil of a step that the hub refused, or answers itself
	foreign bool               // somebody else has opened the task
	seen    uint64             // the sequence number of the task that was followed last
	answer  func(*render.View) // tells such a step
	// record puts the messages together for the session.
	record render.View
	// from is where what answers it begins in the messages of the run, and leaf what
	// that follows in the conversation.
	from int
	leaf *conversation.Node
	// steered is what was pushed into the task here, by the id of its injection.
	steered map[string]queued
}

// size is how many bytes a step keeps in memory that waits to be told: its opening and
// what its task was asked. What came of it is counted with the agent_end behind it.
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

// pushed notes that the agent is told what the user says while it works.
func (st *step) pushed(injection string, q queued) {
	if st.steered == nil {
		st.steered = map[string]queued{}
	}
	st.steered[injection] = q
}

// ask opens a task for what the user says. It returns the Fault of the hub when it
// takes no task.
func (ss *session) ask(said []queued, deadline time.Time) (*task.Task, error) {
	s := ss.server
	req := core.Request{Intent: core.IntentAsk, To: ss.agent, Thread: ss.thread, History: ss.historyToTell(), Deadline: deadline}
	if req.To.IsZero() {
		req.To = core.ToAny()
	}
	call, err := s.circuits.Allow(req.To)
	if err != nil {
		s.engine.Reject(command.BreakerOpen)
		return nil, err
	}
	texts := ss.untold.paragraphs()
	for _, q := range said {
		texts = append(texts, q.text)
		req.Attachments = append(req.Attachments, q.images...)
	}
	req.Content = strings.Join(texts, "\n\n")
	req.Context = thinkingContext(ss.tree.Level)
	task, err := s.openTask(req, hub.OpenOptions{For: requester(said[0].from), Keep: true, Unwatched: true}, ss.hasTalkedWith(req.To))
	if err != nil {
		s.circuits.Bind(call, "")
		return nil, err
	}
	s.circuits.Bind(call, task.ID())
	ss.untold = untoldBash{}
	if with := s.threads[ss.thread]; with != nil && len(with.sessions) > 1 {
		with.tellOthers(ss, task)
	}
	return task, nil
}

// begin adds a step to the run. task is nil when the hub refused it, or answers
// itself: then answer tells it to a view.
func (r *run) begin(said []queued, task *task.Task, answer func(*render.View)) *step {
	now := time.Now().UnixMilli()
	before := len(r.messages)
	for _, q := range said {
		r.say(conversation.UserMessage(q.text, q.images, now))
	}
	st := r.newStep()
	st.run, st.said, st.task, st.answer = r, said, task, answer
	st.open(r.messages[before:])
	return st
}

// open adds a step to its run; words are the messages that it begins with, which have
// been said: none of a step that asks again.
func (st *step) open(words []conversation.Message) {
	s := st.run.session.server
	r := st.run
	if len(r.steps) > 0 {
		st.before = r.last()
	}
	runBegins := len(r.steps) == 0 || len(words) == 0 // asked again
	st.opening = r.session.envelope.Opening(words, runBegins)
	st.from, st.leaf = len(r.messages), r.session.tree.Leaf
	r.steps = append(r.steps, st)
	if st.task == nil {
		st.record.Begin(r.session.rendered(""), nil, 0)
		st.answer(&st.record)
	} else {
		id := st.task.ID()
		rendered := r.session.rendered(id)
		beside := s.runs[id]
		if len(beside) == 0 {
			rendered.Count = s.rendering.Count // here alone: once for all views of the task
		}
		st.record.Begin(rendered, nil, 0)
		s.runs[id] = append(beside, st)
		_ = s.root.Watch(st.task, core.Cursor{}, st) // the beginning is a cursor of every task
	}
	r.session.readers.tellStep(st)
}

// follow takes in the events of a step's task.
func (st *step) follow(events []core.Event) {
	s := st.run.session.server
	ss := st.run.session
	for _, e := range events {
		e, news := e.After(st.seen)
		if !news {
			continue
		}
		st.seen = e.End()
		_ = e.Deliver(&st.record) // a view returns no error
		st.gather()
		if !st.foreign {
			s.circuits.Observe(st.task.ID(), e)
		}
		switch b := e.Body.(type) {
		case core.Assigned:
			if !st.foreign || ss.agent.IsZero() {
				ss.answeredBy(b.Agent)
			}
		case core.SessionLost:
			delete(ss.informed, st.record.Agent())
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
			o := command.Outcome{}
			if !st.foreign {
				o = st.ranOut(e, b)
			}
			if o.Err != "" || st.foreign || !st.compactAndRetry(b.Fault) && !st.retry(b.Fault) {
				st.end(o, render.FaultMessage(b.Fault))
			}
		}
	}
}

// ranOut tells a prompt that the hub ended at its deadline from one whose agent
// failed: only the former is a failure of the command (facts, section 3.5).
func (st *step) ranOut(e core.Event, b core.Failed) command.Outcome {
	s := st.run.session.server
	deadline := st.task.Request().Deadline
	if b.Fault == nil || b.Fault.Code != core.CodeTimeout || e.At.Before(deadline) {
		return command.Outcome{}
	}
	return command.Outcome{Err: fmt.Sprintf("Command 'prompt' timed out after %dms", s.opts.Commands.PromptTimeout.Milliseconds()), TimedOut: true}
}

// end ends a step: with the next of what was queued, or, at the latest where there
// was a problem, with the run.
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
		ss.readers.tellBehind(r.last(), ss.queue.frame(ss.envelope))
		task, err := ss.ask([]queued{q}, time.Now().Add(s.opts.Commands.PromptTimeout))
		if err == nil {
			r.begin([]queued{q}, task, nil)
			return
		}
		at, fault := time.Now(), core.AsFault(err)
		r.begin([]queued{q}, nil, func(v *render.View) {
			_ = v.Failed(core.Event{At: at}, core.Failed{Fault: fault}) // a view returns no error
		}).gather()
		more = false
	}
	r.endRun()
	r.endRetries(problem)
	r.closeRun()
	if problem != "" || !r.compactAfter() {
		r.over(o)
	}
}

// cutOff ends a step of whose task the hub tells no more.
func (st *step) cutOff() {
	_ = st.record.Failed(core.Event{At: time.Now()}, core.Failed{Fault: cutOff}) // a view returns no error
	st.gather()
	st.end(command.Outcome{}, render.FaultMessage(cutOff))
}

// say adds a message to the run and to the conversation of its session.
func (r *run) say(m conversation.Message) {
	r.messages = append(r.messages, m)
	r.session.file.Append(r.session.tree.AppendMessage(m))
}

// gather takes over the messages that have ended in a step.
func (st *step) gather() {
	for _, m := range st.record.TakeMessages() {
		st.run.say(m)
	}
}

// over lets the lane go on behind a run.
func (r *run) over(o command.Outcome) {
	s := r.session.server
	if r.prompt != nil {
		r.prompt.Finish(o)
		return
	}
	s.engine.EndTurn(r.session.key)
}

// endRun tells that a run has ended, to each client once it has been told the rest.
func (r *run) endRun() {
	r.session.readers.tellBehind(r.last(), r.session.envelope.AgentEnd(r.messages[r.retrying.since:]))
}

// closeRun leaves the session idle. What is sent behind it stands behind a fence at
// those clients that are still being told the run.
func (r *run) closeRun() {
	s := r.session.server
	ss := r.session
	ss.run = nil
	for _, c := range ss.readers {
		c.out.over(r)
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

// images reads the images of a prompt (facts, section 5).
func images(x *request) ([]core.File, error) {
	items, ok := x.List("images")
	if !ok && x.Has("images") && !x.Is("images", "null") {
		return nil, errors.New("images: want an array of images, each an object with data and mimeType")
	}
	var files []core.File
	for i, item := range items {
		var image struct {
			Data     string `json:"data"`
			MimeType string `json:"mimeType"`
		}
		if item.Decode(&image) != nil {
			return nil, fmt.Errorf("images[%d]: want an object with data and mimeType", i)
		}
		data, err := base64.StdEncoding.DecodeString(image.Data)
		if err != nil {
			return nil, fmt.Errorf("images[%d].data: want base64", i)
		}
		files = append(files, core.File{Name: fmt.Sprintf("image-%d", i+1), MediaType: image.MimeType, Data: data})
	}
	return files, nil
}
