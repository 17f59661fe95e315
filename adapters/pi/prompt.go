package pi

import (
	"errors"
	"fmt"
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
)

// busy is what a prompt is told while another runs and it does not say how it
// wants to be queued.
const busy = "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message."

// said is what the user says with the command.
func said(x *request) (queued, error) {
	text, _ := x.Text("message")
	files, err := images(x)
	return queued{text: text, images: files, from: x.client.principal}, err
}

// toQueue is what the user says to be queued.
func toQueue(x *request) (queued, error) {
	q, err := said(x)
	switch problem := notQueued(q.text); {
	case err != nil:
	case problem != "":
		err = errors.New(problem)
	case !x.on.queue.fits(q):
		err = fmt.Errorf("Too much waits to be said in session %s (max %d bytes)", x.on.key.ID, maxQueued) //nolint:staticcheck // clients are shown it
	}
	return q, err
}

// prompt begins a run, together with what was said to the idle session before. It
// ends when the run does.
func prompt(s *Server, x *request) command.Outcome {
	ss := x.on
	if ss.run != nil {
		switch {
		case x.Is("streamingBehavior", `"steer"`):
			return steer(s, x)
		case x.Is("streamingBehavior", `"followUp"`):
			return followUp(s, x)
		}
		return command.Failed(busy)
	}
	first, err := said(x)
	if err != nil {
		return command.Failed(err.Error())
	}
	if c, argument, ok := slash(first.text); ok {
		return x.answerSlash(first, c.run(s, ss, argument))
	}
	all := append([]queued{first}, ss.queue.steering...)
	task, err := ss.ask(all, x.Admitted().Add(s.opts.Commands.PromptTimeout))
	if err != nil {
		return command.Failed(core.AsFault(err).Message)
	}
	if len(ss.queue.steering) > 0 {
		ss.queue.steering = nil
		ss.queueChanged()
	}
	ss.run = newRun(ss, x)
	x.DisableTimeout() // by the deadlines of its tasks, which the hub keeps
	ss.run.begin(all, task, nil)
	x.KeepOnly()
	return command.Outcome{Pending: true}
}

// steer pushes a message into the run: to the agent while it works when it takes
// that, else as its next turn. Without a run it waits for the next prompt.
func steer(s *Server, x *request) command.Outcome {
	q, err := toQueue(x)
	if err != nil {
		return command.Failed(err.Error())
	}
	ss := x.on
	if ss.run != nil && ss.run.last().task != nil && len(q.images) == 0 {
		as := s.actAs(q.from)
		defer as.Close(nil)
		in := core.Injected{ID: core.NewID(), Content: q.text, Priority: core.InjectionImmediate, Source: q.from.ID}
		if err = as.Inject(ss.run.last().task.ID(), in); err == nil {
			ss.run.last().pushed(in.ID, q)
			x.MarkQueued() // until the agent has taken it
			return command.Outcome{}
		}
	}
	ss.queue.steering = append(ss.queue.steering, q)
	ss.queueChanged()
	x.MarkQueued()
	return command.Outcome{}
}

// followUp queues a message behind the run, or behind the next one.
func followUp(_ *Server, x *request) command.Outcome {
	q, err := toQueue(x)
	if err != nil {
		return command.Failed(err.Error())
	}
	x.on.queue.following = append(x.on.queue.following, q)
	x.on.queueChanged()
	x.MarkQueued()
	return command.Outcome{}
}

// abort stops the run, if there is one. What was queued stays queued.
func abort(s *Server, x *request) command.Outcome {
	if x.on.run != nil {
		x.stop(x.on, "")
	}
	x.stopSummary(x.on, "")
	return command.Outcome{}
}

// stop cancels the task of a session's run in the name of who sent x.
func (x *request) stop(ss *session, why string) {
	s := x.client.server
	ss.run.aborted = true
	switch {
	case ss.run.retrying.timer != nil:
		ss.run.giveUp(render.RetryCancelled)
		return
	case ss.summarizing != nil: // the run waits for what comes of it
		x.stopSummary(ss, why)
		return
	}
	as := s.actAs(x.client.principal)
	defer as.Close(nil)
	_ = as.Cancel(ss.run.last().task.ID(), why) // a conflict: it has ended by itself
}

// answer takes what a person said to an approval (section 18.2). The first answer
// counts.
func answer(s *Server, x *request) command.Outcome {
	id, _ := x.Text("requestId")
	task, seq, isApproval := render.ParseRequestID(id)
	if !isApproval {
		return x.reply(id)
	}
	here := s.runs[task]
	i := slices.IndexFunc(here, func(st *step) bool { return st.run.session.key.Scope == x.client.Scope })
	if i < 0 {
		return command.Failed("No pending UI request with id " + id)
	}
	asked, ok := approvalAt(here[i].task.Events(), seq)
	switch {
	case !ok:
		return command.Failed("No pending UI request with id " + id)
	case here[i].run.session != x.on:
		return command.Failed("Session ID mismatch for request " + id)
	}
	r, _ := x.Object("response")
	d := core.ApprovalDecided{ID: asked.ID, Approved: r.Is("method", `"confirm"`) && r.Is("confirmed", "true")}
	if r.Is("method", `"cancelled"`) {
		d.Reason = "dismissed"
	}
	as := s.actAs(x.client.principal)
	defer as.Close(nil)
	if as.Decide(task, d) != nil {
		return command.Failed("Request " + id + " already settled")
	}
	return command.Outcome{}
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
