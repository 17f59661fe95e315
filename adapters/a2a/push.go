package a2a

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/webhook"
)

// Bounds of push notifications: the tasks that have some, and those of one task.
const (
	maxPushTasks   = 1024
	maxPushPerTask = 16
	// maxPushBytes is the maximum size of a task in a notification: of a larger one only the
	// status is posted.
	maxPushBytes = 256 << 10
	// maxUnposted is how many notifications wait behind one that its target did not accept:
	// the oldest give way, as the latest says in which state the task is.
	maxUnposted = 64
)

// tokenHeader is where a notification has the token of its configuration.
const tokenHeader = "X-A2A-Notification-Token"

// pushes are the push notifications of a task. Server.pushing guards them.
type pushes struct {
	server  *Server
	id      core.TaskID
	task    *task.Task // nil once it has ended, as it may be large
	tr      *translator
	told    wire.State  // that was posted last
	seen    core.Cursor // the place of the snapshot that tr began with
	configs []*push
}

// push is one configuration, which belongs to who created it: others that may read the task
// neither see nor change it. Its notifications are posted one after the other.
type push struct {
	wire.PushConfig
	by      string // a principal
	target  string
	posting bool
	waiting [][]byte
}

// finished reports whether nothing more will be posted.
func (p *pushes) finished() bool {
	return p.tr.ended && !slices.ContainsFunc(p.configs, func(c *push) bool { return c.posting })
}

func (s *Server) pushes() bool { return s.opts.Webhooks != nil }

var errNoPush = wire.NewError(wire.ReasonPushNotSupported, "this hub posts no notifications: subscribe to the task instead; the setting a2a.push_targets allows them")

// checkPush returns the error for a configuration that cannot be created.
func (c *call) checkPush(config wire.PushConfig) error {
	if !c.server.pushes() {
		return errNoPush
	}
	_, err := c.server.opts.Webhooks.Check(config.URL, webhook.Place{Member: "url", Setting: "a2a.push_targets"})
	return err
}

// addPush creates a configuration, or replaces that of the sender with its id.
func (c *call) addPush(t *task.Task, config wire.PushConfig) (wire.PushConfig, error) {
	if err := c.checkPush(config); err != nil {
		return config, err
	}
	host, _ := c.server.opts.Webhooks.Check(config.URL, webhook.Place{}) // it was checked
	if config.ID == "" {
		config.ID = core.NewID()
	}
	config.TaskID, config.Tenant = string(t.ID()), ""
	s := c.server
	s.pushing.Lock()
	defer s.pushing.Unlock()
	p := s.pushesOf[t.ID()]
	if p == nil {
		if err := s.makeRoom(); err != nil {
			return config, err
		}
		_, tr, at := c.snapshot(t)
		p = &pushes{server: s, id: t.ID(), task: t, tr: tr, told: tr.state()}
		if err := s.people.session.Watch(t, at, p); err != nil {
			return config, err
		}
		s.pushesOf[t.ID()] = p
		if !tr.ended {
			_ = s.people.session.WatchQuestions(question.View{Tag: p, Thread: t.Request().Thread, For: c.from})
		}
	}
	one := &push{PushConfig: config, by: c.from.ID, target: host}
	if i := slices.IndexFunc(p.configs, func(o *push) bool { return o.by == one.by && o.ID == config.ID }); i >= 0 {
		p.configs[i] = one
		return config, nil
	}
	if len(p.configs) == maxPushPerTask {
		return config, core.NewFault(core.CodeOverloaded, "the task has %d configurations: delete one", maxPushPerTask)
	}
	p.configs = append(p.configs, one)
	return config, nil
}

// makeRoom forgets a task that has nothing more to post, if there are too many. Callers hold
// pushing.
func (s *Server) makeRoom() error {
	if len(s.pushesOf) < maxPushTasks {
		return nil
	}
	for id, p := range s.pushesOf {
		if p.finished() {
			delete(s.pushesOf, id)
			return nil
		}
	}
	return core.NewFault(core.CodeOverloaded, "%d tasks with notifications are under way: try again later, or subscribe", maxPushTasks)
}

// notify posts what a batch of events or a question changes in the state of a task.
func (p *pushes) notify(b hub.Batch) {
	p.server.pushing.Lock()
	var due []*webhook.Delivery
	if b.Question != nil {
		due = p.change(p.tr.question(*b.Question))
	}
	if b.Gap != nil {
		due = p.again()
	}
	for _, e := range b.Events {
		if p.tr.ended || e.Cursor().Compare(p.seen) <= 0 {
			continue
		}
		items := p.tr.translate(e)
		if !p.tr.ended {
			due = append(due, p.change(items)...)
			continue
		}
		due = append(due, p.end(items[len(items)-1])...)
	}
	p.server.pushing.Unlock()
	p.server.deliver(due)
}

// again posts what has changed in a task of which events are gone. Callers hold pushing.
func (p *pushes) again() []*webhook.Delivery {
	if p.tr.ended {
		return nil
	}
	whole, tr, at := snapshot(p.task, p.task.Events(), nil)
	tr.questions = p.tr.questions // they are no events
	p.tr, p.seen = tr, at
	now := wire.StatusUpdate{TaskID: whole.ID, ContextID: whole.ContextID, Status: whole.Status, Metadata: whole.Metadata}
	if tr.ended {
		return p.end(wire.StreamResponse{StatusUpdate: &now})
	}
	now.Status = wire.Status{State: tr.state(), At: whole.Status.At}
	return p.change([]wire.StreamResponse{{StatusUpdate: &now}})
}

// end posts the end of a task, whose last item is the status. Callers hold pushing.
func (p *pushes) end(last wire.StreamResponse) []*webhook.Delivery {
	due := p.post(p.final(last))
	p.task = nil
	p.server.people.session.UnwatchQuestions(p)
	return due
}

// change posts the last item of a status that was not posted yet. Callers hold pushing.
func (p *pushes) change(items []wire.StreamResponse) []*webhook.Delivery {
	for _, item := range slices.Backward(items) {
		if u := item.StatusUpdate; u != nil && u.Status.State != p.told {
			p.told = u.Status.State
			return p.post(item)
		}
	}
	return nil
}

// deliver sends deliveries. Callers do not hold pushing: one that fails at once calls back.
func (s *Server) deliver(due []*webhook.Delivery) {
	for _, d := range due {
		s.opts.Webhooks.Send(d)
	}
}

// final returns the whole task at its end, or its last status if the task is large.
func (p *pushes) final(last wire.StreamResponse) wire.StreamResponse {
	whole, _, _ := snapshot(p.task, p.task.Events(), nil)
	size := 0
	for _, a := range whole.Artifacts {
		for _, part := range a.Parts {
			size += len(part.Text) + len(part.Raw) + len(part.Data)
		}
	}
	if size > maxPushBytes {
		return last
	}
	return wire.StreamResponse{Task: &whole}
}

// post queues a notification for every configuration, and returns what is to be sent now.
// Callers hold pushing.
func (p *pushes) post(item wire.StreamResponse) (due []*webhook.Delivery) {
	body := item.AppendJSON(nil)
	for _, c := range p.configs {
		if c.waiting = append(c.waiting, body); len(c.waiting) > maxUnposted {
			c.waiting = c.waiting[1:]
			p.server.hub.Count("a2a.push.dropped")
		}
		due = append(due, p.next(c)...)
	}
	return due
}

// next returns the next notification of a configuration, none while one is under way. Callers
// hold pushing.
func (p *pushes) next(c *push) []*webhook.Delivery {
	if c.posting || len(c.waiting) == 0 {
		return nil
	}
	body := c.waiting[0]
	c.posting, c.waiting = true, c.waiting[1:]
	return []*webhook.Delivery{{URL: c.URL, Target: c.target, Body: body, Of: p.id, Header: c.header, Attempted: func(a webhook.Outcome) {
		p.server.hub.Count("a2a.push." + string(a))
		if a == webhook.Retrying {
			return
		}
		p.server.pushing.Lock()
		c.posting = false
		due := p.next(c)
		p.server.pushing.Unlock()
		p.server.deliver(due)
	}}}
}

// header returns the headers of a notification (section 4.3.3).
func (c *push) header(int) http.Header {
	h := http.Header{"Content-Type": {wire.MediaA2A}, wire.VersionHeader: {wire.Version}}
	if a := c.Authentication; a != nil {
		value := a.Scheme
		if a.Credentials != "" {
			value += " " + a.Credentials
		}
		h.Set("Authorization", value)
	}
	if c.Token != "" {
		h.Set(tokenHeader, c.Token)
	}
	return h
}

// shown returns a configuration without what only its target is to know.
func (c *push) shown() wire.PushConfig {
	out := c.PushConfig
	if a := out.Authentication; a != nil {
		plain := *a
		plain.Credentials = ""
		out.Authentication = &plain
	}
	return out
}

// createPush is CreateTaskPushNotificationConfig.
func (c *call) createPush(params strictjson.Value) (json.RawMessage, error) {
	r, err := wire.Read[wire.PushConfig](params)
	if err != nil {
		return nil, err
	}
	if !c.server.pushes() {
		return nil, errNoPush
	}
	t, err := c.lookUp(r.Tenant, r.TaskID)
	if err != nil {
		return nil, err
	}
	if t.State() == task.Ended {
		return nil, wire.NewError(wire.ReasonUnsupportedOperation, "task "+r.TaskID+" has ended: nothing more happens in it")
	}
	named := r.ID
	if r, err = c.addPush(t, r); err != nil {
		return nil, err
	}
	if named != "" { // it replaces one that was made at another hub
		c.server.deleteElsewhere(c.r.Context(), c.from, pushID{t.ID(), named})
	}
	return strictjson.Marshal((&push{PushConfig: r}).shown())
}

// pushesNamed returns a request and the task whose configurations it names, or of which it has to
// name one.
func (c *call) pushesNamed(params strictjson.Value, one bool) (r wire.PushRequest, t *task.Task, err error) {
	if r, err = wire.Read[wire.PushRequest](params); err == nil && one {
		err = r.CheckID()
	}
	switch {
	case err != nil:
	case !c.server.pushes():
		err = errNoPush
	default:
		t, err = c.lookUp(r.Tenant, r.TaskID)
	}
	return r, t, err
}

// getPush is GetTaskPushNotificationConfig.
func (c *call) getPush(params strictjson.Value) (json.RawMessage, error) {
	r, t, err := c.pushesNamed(params, true)
	if err != nil {
		return nil, err
	}
	for _, one := range c.server.allConfigs(c.r.Context(), c.from, t.ID()) {
		if one.ID == r.ID {
			return strictjson.Marshal(one)
		}
	}
	return nil, wire.NewError(wire.ReasonTaskNotFound, "task "+shorten(r.TaskID)+" has no push notification configuration "+shorten(r.ID))
}

// listPush is ListTaskPushNotificationConfigs: all of them, as there are few.
func (c *call) listPush(params strictjson.Value) (json.RawMessage, error) {
	_, t, err := c.pushesNamed(params, false)
	if err != nil {
		return nil, err
	}
	return strictjson.Marshal(wire.ListPushResponse{Configs: c.server.allConfigs(c.r.Context(), c.from, t.ID())})
}

// deletePush is DeleteTaskPushNotificationConfig. Deleting one that is not there is no error.
func (c *call) deletePush(params strictjson.Value) (json.RawMessage, error) {
	r, t, err := c.pushesNamed(params, true)
	if err != nil {
		return nil, err
	}
	id := pushID{t.ID(), r.ID}
	if !c.server.deleteConfig(c.from, id) {
		c.server.deleteElsewhere(c.r.Context(), c.from, id)
	}
	return json.RawMessage("{}"), nil
}
