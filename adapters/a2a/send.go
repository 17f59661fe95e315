package a2a

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/task"
)

// send is SendMessage: it answers with the task once that has ended or waits for people, or
// at once if the client does not want to wait.
func (c *call) send(params strictjson.Value) (json.RawMessage, error) {
	r, err := c.readSend(params)
	if err != nil {
		return nil, err
	}
	s := c.connect()
	defer leave(s)
	t, _, err := c.accept(s, r, params)
	if err != nil {
		return nil, err
	}
	if !r.Configuration.ReturnImmediately {
		if err := c.await(s, t, (*translator).interrupted); err != nil {
			return nil, err
		}
	}
	out, _, _ := c.snapshot(t)
	c.tells(t)
	out = keep(out, r.Configuration.HistoryLength)
	return strictjson.Marshal(wire.StreamResponse{Task: &out})
}

// sendStreaming is SendStreamingMessage: it answers with the task as the message opened it or
// found it, and all that follows, however fast the agent is.
func (c *call) sendStreaming(params strictjson.Value) (json.RawMessage, error) {
	r, err := c.readSend(params)
	if err != nil {
		return nil, err
	}
	s := c.connect()
	defer leave(s)
	t, events, err := c.accept(s, r, params)
	if err != nil {
		return nil, err
	}
	whole, tr, at := snapshot(t, events, nil)
	return nil, c.stream(s, t, keep(whole, r.Configuration.HistoryLength), tr, at)
}

func (c *call) readSend(params strictjson.Value) (wire.SendRequest, error) {
	r, err := wire.ReadSendRequest(params)
	if err != nil {
		return r, err
	}
	switch {
	case r.Message.Role != wire.RoleUser:
		return r, core.NewFault(core.CodeInvalid, "message.role: want %s from a client, got %s", wire.RoleUser, r.Message.Role)
	case len(r.Message.ContextID) > core.MaxIDBytes || len(r.Message.ID) > core.MaxIDBytes:
		return r, core.NewFault(core.CodeInvalid, "message: want ids of at most %d bytes", core.MaxIDBytes)
	case r.Configuration.Push != nil:
		err = c.checkPush(*r.Configuration.Push)
	}
	return r, err
}

// accept does what a message asks for, once: it opens a task or goes on with one. It also
// returns the events of the task up to what the message did. A message that comes again does
// nothing and returns the same task.
func (c *call) accept(s *hub.Session, r wire.SendRequest, params strictjson.Value) (*task.Task, []core.Event, error) {
	agent, err := c.agent(r.Tenant)
	if err != nil {
		return nil, nil, err
	}
	sum := sha256.New()
	_, _ = sum.Write([]byte(agent + "\n")) // hash.Hash never fails
	_, _ = sum.Write(params.Get("message").Raw())
	content := [sha256.Size]byte(sum.Sum(nil))
	// Other content is another message, whatever its id.
	sent := hub.Repeatable{Owner: c.from.ID, Name: r.Message.ID + "\n" + string(content[:]), Content: content}

	var known *task.Task
	earlier := 0 // how many events the task had before
	if r.Message.TaskID != "" {
		if known, err = c.find(r.Message.TaskID, agent); err != nil {
			return nil, nil, err
		}
		earlier = len(known.Events())
	}
	t := known
	id, again, err := c.server.seen.Once(c.r.Context(), sent, func(key string) (_ core.TaskID, err error) {
		if known != nil {
			return known.ID(), c.goOn(s, known, r)
		}
		if t, err = c.open(s, r, agent, key); err != nil {
			return "", err
		}
		return t.ID(), nil
	})
	switch {
	case err != nil:
		return nil, nil, err
	case again:
		c.server.hub.Count("a2a.duplicate")
		if t, err = c.find(string(id), agent); err != nil {
			return nil, nil, err
		}
	case r.Configuration.Push != nil:
		r.Configuration.Push.TaskID = string(t.ID())
		if _, err := c.addPush(t, *r.Configuration.Push); err != nil {
			return nil, nil, err
		}
	}
	switch events := t.Events(); {
	case known == nil:
		return t, upTo(events, 0, core.KindOpened), nil
	case again: // what the message did is somewhere in them
		return t, events, nil
	default:
		return t, upTo(events, earlier, core.KindApprovalDecided, core.KindInjected), nil
	}
}

// upTo returns the first n events and those of the kinds that follow them directly. Where the
// beginning of the task is no longer kept, that is all events.
func upTo(events []core.Event, n int, kinds ...core.Kind) []core.Event {
	for n < len(events) && slices.Contains(kinds, events[n].Body.Kind()) {
		n++
	}
	if n == 0 {
		return events
	}
	return events[:n]
}

// open opens a task for a message, with a key of [hub.Keys].
func (c *call) open(s *hub.Session, r wire.SendRequest, agent core.AgentID, key string) (*task.Task, error) {
	if agent == "" {
		return nil, core.NewFault(core.CodeInvalid, "tenant: missing; this is the interface of the hub: name the agent, as its card %s does", wire.CardPath)
	}
	req := wire.RequestOf(r)
	req.Intent, req.To, req.Thread = core.IntentAsk, core.ToAgent(agent), core.ThreadID(cmp.Or(r.Message.ContextID, core.NewID()))
	above, err := r.Chain()
	if err != nil {
		return nil, err
	}
	opts := hub.OpenOptions{Keep: true, Unwatched: true, MinHops: above.Hops, Trace: core.TraceOf(c.r.Header), Key: key}
	for _, id := range above.Tasks {
		opts.Above = append(opts.Above, core.TaskID(id))
	}
	people := c.server.people
	view := people.expect(req.Thread, c.from)
	t, err := s.Open(req, opts)
	if err != nil {
		people.session.UnwatchQuestions(view)
		return nil, err
	}
	people.stay(view, t)
	return t, nil
}

// find returns a task of the agent's interface that the sender may read. Any other looks as
// if it did not exist (section 3.3.2).
func (c *call) find(id string, agent core.AgentID) (*task.Task, error) {
	t, err := c.server.hub.Task(c.r.Context(), c.from, core.TaskID(id))
	switch f := core.AsFault(err); {
	case f == nil && !t.IsNotice() && served(agent, t.Agent(), t.To()):
		return t, nil
	case f != nil && f.Code != core.CodeUnknownTask && f.Code != core.CodeNotAuthorized:
		return nil, err
	}
	return nil, wire.NewError(wire.ReasonTaskNotFound, "task "+shorten(id)+" is not known here: send the id of a task of yours")
}

// served reports whether the interface of an agent has a task: one that it does, or that is
// for it. That of the hub has all.
func served(agent, of core.AgentID, to core.Address) bool {
	return agent == "" || of == agent || of == "" && to.Agent() == agent
}

// await waits until the task has ended or enough holds for its translator.
func (c *call) await(s *hub.Session, t *task.Task, enough func(*translator) bool) error {
	_, tr, at := snapshot(t, t.Events(), nil)
	if tr.ended || enough(tr) {
		return nil
	}
	if err := c.watch(s, t, at); err != nil {
		return err
	}
	for !tr.ended && !enough(tr) {
		b, err := s.Next(c.r.Context())
		if err != nil {
			return err
		}
		if b.Question != nil {
			tr.question(*b.Question)
		}
		for _, e := range b.Events {
			tr.translate(e)
		}
	}
	return nil
}

// watch makes the session read a task after a cursor, and the questions in it.
func (c *call) watch(s *hub.Session, t *task.Task, at core.Cursor) error {
	if err := s.Watch(t, at, nil); err != nil {
		return err
	}
	return s.WatchQuestions(question.View{Thread: t.Request().Thread, For: c.from})
}

// cancelTask is CancelTask. It answers once the task has ended, which it does when its agent
// confirms or after a grace.
func (c *call) cancelTask(params strictjson.Value) (json.RawMessage, error) {
	r, t, err := c.named(params)
	if err != nil {
		return nil, err
	}
	s := c.connect()
	defer leave(s)
	var why struct {
		Reason string `json:"reason"`
	}
	_ = params.Get("metadata").Decode(&why) // any metadata is allowed
	if t.State() == task.Ended {
		err = core.NewFault(core.CodeConflict, "")
	} else {
		err = s.Cancel(t.ID(), why.Reason)
	}
	switch f := core.AsFault(err); {
	case f != nil && f.Code == core.CodeConflict:
		return nil, wire.NewError(wire.ReasonTaskNotCancelable, "task "+r.ID+" has ended")
	case f != nil:
		return nil, err
	}
	if err := c.await(s, t, func(*translator) bool { return false }); err != nil {
		return nil, err
	}
	out, _, _ := c.snapshot(t)
	c.tells(t)
	return strictjson.Marshal(out)
}

// tells notes for the frames of the request that its answer tells the end of a task.
func (c *call) tells(t *task.Task) {
	if r := frame.RingOf(c.r.Context()); r != nil && t.HasEnded() {
		r.Tell(t.ID(), t.Answer().End)
	}
}

// named returns a request and the task that it names.
func (c *call) named(params strictjson.Value) (r wire.TaskRequest, t *task.Task, err error) {
	if r, err = wire.Read[wire.TaskRequest](params); err == nil {
		t, err = c.lookUp(r.Tenant, r.ID)
	}
	return r, t, err
}

// lookUp returns the task of an id at the interface of a tenant.
func (c *call) lookUp(tenant, id string) (*task.Task, error) {
	agent, err := c.agent(tenant)
	if err != nil {
		return nil, err
	}
	return c.find(id, agent)
}

// getTask is GetTask.
func (c *call) getTask(params strictjson.Value) (json.RawMessage, error) {
	r, t, err := c.named(params)
	if err != nil {
		return nil, err
	}
	out, _, _ := c.snapshot(t)
	return strictjson.Marshal(keep(out, r.HistoryLength))
}
