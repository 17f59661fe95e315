package pi

import (
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
)

// busy is the error of a prompt that comes while another runs and does not say how to queue
// it.
const busy = "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message."

// messageIn returns the message of the command.
func messageIn(x *request) (userMessage, error) {
	text, _ := x.Text("message")
	files, err := images(x)
	return userMessage{text: text, images: files, from: x.client.principal, trace: x.trace()}, err
}

// trace returns the trace context of the command: that of its fields, else that of its connection.
func (x *request) trace() core.Trace {
	var t core.Trace
	t.Parent, _ = x.Text(core.TraceparentKey)
	t.State, _ = x.Text(core.TracestateKey)
	if t = t.Carried(); t.Parent == "" {
		return x.client.trace
	}
	return t
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

// messageToQueue returns the message of the command if it can be queued.
func messageToQueue(x *request) (userMessage, error) {
	q, err := messageIn(x)
	switch problem := checkQueueable(q.text); {
	case err != nil:
	case problem != "":
		err = errors.New(problem)
	case !x.target.queue.fits(q, x.target.server.opts.maxQueued):
		err = fmt.Errorf("Too much waits to be said in session %s (max %d bytes)", x.target.key.ID, x.target.server.opts.maxQueued) //nolint:staticcheck // clients are shown it
	}
	return q, err
}

// prompt begins a run with its message and those that steered the idle session before. It
// ends when the run does.
func prompt(s *Server, x *request) command.Outcome {
	ss := x.target
	if ss.run != nil {
		switch {
		case x.Is("streamingBehavior", `"steer"`):
			return steer(s, x)
		case x.Is("streamingBehavior", `"followUp"`):
			return followUp(s, x)
		}
		return command.Failed(busy)
	}
	first, err := messageIn(x)
	if err != nil {
		return command.Failed(err.Error())
	}
	if c, argument, ok := slash(first.text); ok {
		return x.answerSlash(first, c.run(s, x, argument))
	}
	all := append([]userMessage{first}, ss.queue.steering...)
	task, err := ss.ask(all, x.Admitted().Add(s.opts.Commands.PromptTimeout))
	if err != nil {
		return command.Failed(core.AsFault(err).Message)
	}
	x.became(task.ID(), core.KindOpened, nil)
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

// steer injects a message into the run if the agent takes injections; otherwise it becomes
// the next turn. Without a run it waits for the next prompt.
func steer(s *Server, x *request) command.Outcome {
	q, err := messageToQueue(x)
	if err != nil {
		return command.Failed(err.Error())
	}
	ss := x.target
	if ss.run != nil && ss.run.last().task != nil && len(q.images) == 0 {
		in := core.Injected{ID: core.NewID(), Content: q.text, Priority: core.InjectionImmediate, Source: q.from.ID, Trace: q.trace}
		id := ss.run.last().task.ID()
		err = s.act(q.from, core.Inject{Task: id, Context: in})
		if x.became(id, core.KindInjected, err); err == nil {
			ss.run.last().addInjected(in.ID, q)
			x.MarkQueued() // until the agent has taken it
			return command.Outcome{}
		}
	}
	ss.queue.steering = append(ss.queue.steering, q)
	ss.queueChanged()
	x.MarkQueued()
	return command.Outcome{}
}

// followUp queues a message for after the run, or after the next one.
func followUp(_ *Server, x *request) command.Outcome {
	q, err := messageToQueue(x)
	if err != nil {
		return command.Failed(err.Error())
	}
	x.target.queue.following = append(x.target.queue.following, q)
	x.target.queueChanged()
	x.MarkQueued()
	return command.Outcome{}
}

// abort stops the run, if there is one. Queued messages stay queued.
func abort(s *Server, x *request) command.Outcome {
	if x.target.run != nil {
		x.stop(x.target, "")
	}
	x.stopSummary(x.target, "")
	return command.Outcome{}
}

// stop cancels a session's run in the name of the client that sent x.
func (x *request) stop(ss *session, why string) {
	ss.run.aborted = true
	switch {
	case ss.run.retrying.timer != nil:
		ss.run.giveUp(render.RetryCancelled)
		return
	case ss.summarizing != nil: // the run waits for the summary
		x.stopSummary(ss, why)
		return
	}
	x.cancel(x.client.principal, ss.run.last().task.ID(), why)
}

// cancel cancels a task in the name of the principal. On a conflict the task has ended already.
func (x *request) cancel(by core.Principal, id core.TaskID, why string) {
	x.became(id, core.KindCancelRequested, x.client.server.act(by, core.Cancel{Task: id, Reason: why}))
}
