package pi

import (
	"cmp"
	"errors"
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
)

// busy is what a prompt is told while another runs and it does not say how it
// wants to be queued.
const busy = "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message."

// said is what the user says with the command.
func said(x *execution) (queued, error) {
	text, _ := x.text("message")
	files, err := images(x)
	return queued{text: text, images: files, from: x.client.principal}, err
}

// toQueue is what the user says to be queued.
func toQueue(x *execution) (queued, error) {
	q, err := said(x)
	if problem := cmp.Or(notQueued(q.text), x.on.room(q)); err == nil && problem != "" {
		err = errors.New(problem)
	}
	return q, err
}

// prompt begins a run, together with what was said to the idle session before. It
// ends when the run does.
func prompt(s *Server, x *execution) outcome {
	ss := x.on
	if ss.run != nil {
		switch {
		case x.is("streamingBehavior", `"steer"`):
			return steer(s, x)
		case x.is("streamingBehavior", `"followUp"`):
			return followUp(s, x)
		}
		return failed(busy)
	}
	first, err := said(x)
	if err != nil {
		return failed(err.Error())
	}
	if c, argument, ok := slash(first.text); ok {
		return s.answerSlash(x, first, c.run(s, ss, argument))
	}
	all := append([]queued{first}, ss.steering...)
	task, err := s.ask(ss, all, x.admitted.Add(s.opts.PromptTimeout))
	if err != nil {
		return failed(core.AsFault(err).Message)
	}
	if len(ss.steering) > 0 {
		ss.steering = nil
		ss.queueChanged()
	}
	ss.run = newRun(ss, x)
	x.guarded = true // by the deadlines of its tasks, which the hub keeps
	s.begin(ss.run, all, task, nil)
	s.shed(x)
	return outcome{pending: true}
}

// steer pushes a message into the run: to the agent while it works when it takes
// that, else as its next turn. Without a run it waits for the next prompt.
func steer(s *Server, x *execution) outcome {
	q, err := toQueue(x)
	if err != nil {
		return failed(err.Error())
	}
	ss := x.on
	if ss.run != nil && ss.run.last().task != nil && len(q.images) == 0 {
		as := s.as(q.from)
		defer as.Close(nil)
		in := core.Injected{ID: core.NewID(), Content: q.text, Priority: core.InjectionImmediate, Source: q.from.ID}
		if err = as.Inject(ss.run.last().task.ID(), in); err == nil {
			ss.run.last().pushed(in.ID, q)
			x.queued = true // until the agent has taken it
			return outcome{}
		}
	}
	ss.steering = append(ss.steering, q)
	ss.queueChanged()
	x.queued = true
	return outcome{}
}

// followUp queues a message behind the run, or behind the next one.
func followUp(_ *Server, x *execution) outcome {
	q, err := toQueue(x)
	if err != nil {
		return failed(err.Error())
	}
	x.on.following = append(x.on.following, q)
	x.on.queueChanged()
	x.queued = true
	return outcome{}
}

// abort stops the run, if there is one. What was queued stays queued.
func abort(s *Server, x *execution) outcome {
	if x.on.run != nil {
		s.stop(x, x.on, "")
	}
	s.stopAside(x, x.on, "")
	return outcome{}
}

// stop cancels the task of a session's run in the name of who sent x.
func (s *Server) stop(x *execution, ss *session, why string) {
	ss.run.aborted = true
	switch {
	case ss.run.retrying.timer != nil:
		s.giveUp(ss.run, render.RetryCancelled)
		return
	case ss.aside != nil: // the run waits for what comes of it
		s.stopAside(x, ss, why)
		return
	}
	as := s.as(x.client.principal)
	defer as.Close(nil)
	_ = as.Cancel(ss.run.last().task.ID(), why) // a conflict: it has ended by itself
}

// answer takes what a person said to an approval (section 18.2). The first answer
// counts.
func answer(s *Server, x *execution) outcome {
	id, _ := x.text("requestId")
	task, seq, isApproval := render.ParseRequestID(id)
	if !isApproval {
		return s.reply(x, id)
	}
	here := s.runs[task]
	i := slices.IndexFunc(here, func(st *step) bool { return st.run.session.key.scope == x.client.scope })
	if i < 0 {
		return failed("No pending UI request with id " + id)
	}
	asked, ok := approvalAt(here[i].task.Events(), seq)
	switch {
	case !ok:
		return failed("No pending UI request with id " + id)
	case here[i].run.session != x.on:
		return failed("Session ID mismatch for request " + id)
	}
	r, _ := x.object("response")
	d := core.ApprovalDecided{ID: asked.ID, Approved: r.is("method", `"confirm"`) && r.is("confirmed", "true")}
	if r.is("method", `"cancelled"`) {
		d.Reason = "dismissed"
	}
	as := s.as(x.client.principal)
	defer as.Close(nil)
	if as.Decide(task, d) != nil {
		return failed("Request " + id + " already settled")
	}
	return outcome{}
}

// approvalAt returns the approval that was asked for with sequence number seq.
func approvalAt(events []core.Event, seq uint64) (core.ApprovalRequested, bool) {
	for _, e := range events {
		if e.Seq == seq {
			a, ok := e.Body.(core.ApprovalRequested)
			return a, ok
		}
	}
	return core.ApprovalRequested{}, false
}
