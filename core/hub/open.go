package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/task"
)

// OpenOptions are options of [Session.Open].
type OpenOptions struct {
	// For is the requester, where an operator asks for somebody else. The zero For is the
	// session's own principal.
	For core.Principal
	// Keep lets the task continue when the session ends, as [Identity.Keep] does for all.
	Keep bool
	// Unwatched keeps the events of the task out of Next.
	Unwatched bool
	// Private keeps a notice from subscribers: only the agent addressed gets it.
	Private bool
	// Tag comes back with every batch of the task.
	Tag any
	// Trace is the trace context of the requester. One that is malformed counts for nothing.
	Trace core.Trace
	// MinHops is how many tasks stand above this one by the word of the requester, at least:
	// one that another hub sent has tasks above it there (promise P10).
	MinHops int
	// Above are the tasks above this one by the word of the requester, the nearest last. The
	// last one that runs here is a cause of the task if it is the requester's own, if the
	// requester is the agent that works on it, or if the agent addressed is. The others count
	// for nothing.
	Above []core.TaskID
	// Key is the mark of a request that its sender may repeat: see [Keys.Once].
	Key string
	// DefaultDeadline says that the deadline of the request is a default, as that of a request without
	// one: see [core.Opened].
	DefaultDeadline bool
	// Attends says that the requester reads the questions of the task's thread, as after
	// [Hub.ReadQuestions], before an agent can ask any.
	Attends bool
	// Branch begins the conversation of the request as a branch of another one; zero does not.
	Branch Branch
	// AsksAgain says that the requester asks again until an agent is here for the address. A refusal
	// because there is none, unknown_agent or unknown_domain, has no task then.
	AsksAgain bool

	tool, call string // the tool of the hub that opens it, and the id of the call
}

// Open opens a task. Its events come from Next, Opened first, unless Unwatched is set. When
// the request is refused, the error is a Fault that says why: invalid, too_large,
// unknown_agent, unknown_domain, unreachable, overloaded, unsupported, not_authorized, loop
// or budget. A refusal that was recorded comes with its task, none of whose events come
// from Next.
func (s *Session) Open(req core.Request, o OpenOptions) (*task.Task, error) {
	c := &struct { // one allocation
		core.Open
		request core.Request
	}{core.Open{
		For: o.For, Keep: o.Keep, Unwatched: o.Unwatched, Private: o.Private, MinHops: max(o.MinHops, s.floor), Above: o.Above,
		Key: o.Key, DefaultDeadline: o.DefaultDeadline, Attends: o.Attends, AsksAgain: o.AsksAgain, Tool: o.tool, ToolCall: o.call,
	}, req}
	c.Request = &c.request
	if err := o.Branch.begin(c.Request); err != nil {
		return nil, err
	}
	if o.Trace == (core.Trace{}) {
		o.Trace = s.trace
	}
	r, err := s.hub.do(context.Background(), s, core.Call{Principal: s.identity.Principal, Trace: o.Trace.Carried(), Command: &c.Open}, nil)
	if err == nil && !o.Unwatched {
		s.attach(r.task, task.Requester, o.Tag)
	}
	return r.task, err
}

// attach makes the session a reader of a task that it, or another one for it, has opened.
func (s *Session) attach(t *task.Task, role task.Role, tag any) {
	t.Attach(s.peer(), role, tag, 0)
	s.mu.Lock()
	released := s.released
	s.mu.Unlock()
	if released { // maybe before the reader was there
		t.Detach(s.peer(), role)
	}
}

func (h *Hub) open(s *Session, o *core.Open, trace core.Trace) (*task.Task, error) {
	byDefault := o.DefaultDeadline || o.Request.Deadline.IsZero()
	req, err := h.complete(s, *o.Request, byDefault)
	if err != nil {
		h.Count("refused." + string(core.AsFault(err).Code))
		return nil, err
	}
	from := cmp.Or(o.For, s.identity.Principal)
	req.To = h.withFallback(from, &req)
	causes, hops, denied := s.causes(req.Cause, from)
	req.Cause = "" // until it is checked
	if c, ok := h.foreignCause(from, o.Request.To.Agent(), o.Above); ok {
		causes = longestFirst(append(causes, c))
	}
	if len(causes) > 0 {
		req.Cause = causes[0].task // the one with the most hops
	}
	chain := policy.ChainBelow(s.AgentID(), chainsOf(causes))
	chain.Hops = max(chain.Hops, o.MinHops, hops)
	t := &job{Task: h.tasks.New(from, chain, req, h.traceOf(s, o, trace, causes), o.Key), opener: s}
	t.SetAbove(h.goingOn(causes))
	if byDefault && !s.identity.FixedDeadline {
		t.SetDefaultDeadline()
	}
	if err = denied; err == nil {
		err = h.checkCauses(t, causes, &req)
	}
	var there choice
	index, elsewhere := 0, false
	if err == nil {
		there, index, elsewhere = h.placement(t)
	}
	admit := func() error { return h.admit(s, t, o) }
	if elsewhere {
		admit = func() error { return h.openAt(s, t, &there, index, o) }
	}
	if err := admit(); err != nil {
		h.Count("refused." + string(core.AsFault(err).Code))
		return nil, err
	}
	if elsewhere {
		return t.Task, nil
	}
	defer h.admitted.Done()
	if err == nil {
		err = h.start(t, o.Private)
	}
	if err == nil {
		h.record(t)
		return t.Task, nil
	}
	f := h.withCause(core.AsFault(err), causes)
	if !h.reject(t, f) {
		return nil, f
	}
	return t.Task, f
}

// withFallback returns the address of a request with the agents that the one it names falls back to, as far as the
// requester may find them. A notice is for the agent that it names.
func (h *Hub) withFallback(from core.Principal, req *core.Request) core.Address {
	to := req.To
	if to.Reach() != core.ReachAgent || req.Intent == core.IntentNotify {
		return to
	}
	e, ok := h.roster.Find(to.Agent())
	if !ok || len(e.Fallback) == 0 || !h.sees(from, &e) {
		return to
	}
	e.Fallback = h.found(from, e.Fallback)
	return e.OrFallback(to)
}

// start begins a task that its requester can afford.
func (h *Hub) start(t *job, private bool) error {
	if err := h.afford(t.Task); err != nil {
		return err
	}
	return h.begin(t, private)
}

// chainsOf returns the chains of causes.
func chainsOf(causes []cause) (all []policy.Chain) {
	for _, c := range causes {
		all = append(all, c.chain)
	}
	return all
}

// traceOf returns the trace context of a task that is being opened.
func (h *Hub) traceOf(s *Session, o *core.Open, trace core.Trace, causes []cause) core.Trace {
	if trace.Parent == "" && len(causes) == 0 {
		trace = s.identity.Trace
	}
	if h.tracer != nil {
		return h.tracer.Open(h.opening(trace, causes, o))
	}
	trace.Above = trace.Parent // the task has no span of its own
	return trace
}

// checkCauses returns why a task may not be opened because of others, nil if it may.
func (h *Hub) checkCauses(t *job, causes []cause, req *core.Request) error {
	if err := t.Chain().CheckHops(h.limits.Hops); err != nil {
		return err
	}
	if len(causes) > 0 && causes[0].over {
		return h.checkRepeated(causes[0].task, req)
	}
	return nil
}

// withCause says in a refusal as a loop which task that has ended counts as the cause.
func (h *Hub) withCause(f *core.Fault, causes []cause) *core.Fault {
	if f.Code == core.CodeLoop && len(causes) > 0 && causes[0].over {
		return core.NewFault(f.Code, "%s; it counts as because of task %s, which ended less than %s ago", f.Message, causes[0].task, h.limits.CauseMemory)
	}
	return f
}

// refuse ends a task that no agent gets. It reports false if the task has ended before.
func (h *Hub) refuse(j *job, err error) bool {
	f := core.AsFault(err)
	h.Count("refused." + string(f.Code))
	return j.Refuse(f)
}

// complete checks a request and fills in defaults.
func (h *Hub) complete(s *Session, req core.Request, byDefault bool) (core.Request, error) {
	now := time.Now()
	h.setDefaults(s, &req, now)
	if latest := now.Add(h.limits.MaxDeadline); byDefault && req.Deadline.After(latest) {
		req.Deadline = latest.Round(0)
	}
	if err := h.checkRequest(&req, now); err != nil || s.identity.Checked {
		return req, err
	}
	return req, checkJSON(&req)
}

// setDefaults fills in what a request does not say.
func (h *Hub) setDefaults(s *Session, req *core.Request, now time.Time) {
	if req.Intent == 0 {
		req.Intent = core.IntentAsk
	}
	if req.Priority == 0 {
		req.Priority = core.PriorityNormal
	}
	if req.Deadline.IsZero() {
		wait := s.identity.Deadline
		if wait <= 0 {
			wait = h.limits.Deadline
		}
		req.Deadline = now.Add(wait)
	}
	req.Deadline = req.Deadline.Round(0)
}

// checkRequest returns why the hub takes no such request, nil if it does.
func (h *Hub) checkRequest(req *core.Request, now time.Time) error {
	switch {
	case req.To.IsZero():
		return core.NewFault(core.CodeInvalid, "the address is missing: send an agent id, capability:NAME, domain:NAME or *")
	case req.To.Reach() == core.ReachHub && req.Intent != core.IntentNotify:
		return core.NewFault(core.CodeUnsupported, "the hub answers no questions itself: address an agent, or * for whoever is free")
	case req.Intent == core.IntentNotify && req.Notice == nil:
		return core.NewFault(core.CodeInvalid, "the notice is missing: send a topic")
	case req.Intent == core.IntentNotify && strings.TrimSpace(req.Notice.Topic) == "":
		return core.NewFault(core.CodeInvalid, "the topic of the notice is missing")
	case req.Intent != core.IntentNotify && isEmpty(req):
		return core.NewFault(core.CodeInvalid, "the content is empty: say what is wanted")
	case longestName(req) > core.MaxIDBytes:
		return core.NewFault(core.CodeInvalid, "a name in the request has %d bytes: use at most %d for the address, thread, domain and topic", longestName(req), core.MaxIDBytes)
	case req.Deadline.After(now.Add(h.limits.MaxDeadline)):
		return core.NewFault(core.CodeInvalid, "the deadline is more than %s away: set an earlier one", h.limits.MaxDeadline)
	case !req.Deadline.After(now):
		return core.NewFault(core.CodeTimeout, "the deadline has passed already")
	case req.Options.Check() != nil:
		return req.Options.Check()
	case req.Size() > h.limits.RequestBytes:
		return core.NewFault(core.CodeTooLarge, "the request has %d bytes, the limit is %d (limits.request_bytes): send less, or say where it is", req.Size(), h.limits.RequestBytes)
	}
	return nil
}

// longestName returns how long the longest name in a request is, as a refusal keeps it.
func longestName(req *core.Request) int {
	n := max(len(req.To.String()), len(req.Thread), len(req.Domain), len(req.Cause))
	if req.Notice != nil {
		n = max(n, len(req.Notice.Topic))
	}
	return n
}

// isEmpty reports whether a question asks nothing.
func isEmpty(req *core.Request) bool {
	return req.Content == "" && len(req.Data) == 0 && len(req.Attachments) == 0 && req.Foreign == nil
}

// checkJSON refuses a request with a part that is to be JSON and is not.
func checkJSON(req *core.Request) error {
	var noticed json.RawMessage
	if req.Notice != nil {
		noticed = req.Notice.Data
	}
	for _, part := range [...]struct {
		name string
		raw  json.RawMessage
	}{{"data", req.Data}, {"context", req.Context}, {"data of the notice", noticed}} {
		if len(part.raw) > 0 && !json.Valid(part.raw) {
			return core.NewFault(core.CodeInvalid, "%s is not JSON", part.name)
		}
	}
	return checkForeign(req.Foreign)
}

// checkForeign refuses fields that could not be recorded.
func checkForeign(f *core.Foreign) error {
	if f != nil && len(f.JSON) > 0 && !json.Valid(f.JSON) {
		return core.NewFault(core.CodeInvalid, "the fields of dialect %s are not JSON", f.Dialect)
	}
	return nil
}

// ErrStopping is wrapped by the Fault that refuses a request because the hub is stopping. The Fault
// names the hubs of the cluster that are not, where there are any.
var ErrStopping = errors.New("the hub is stopping")

// admit registers a task: from here on it is watched and certain to end. It is recorded once it is known
// whether anybody gets it; a hub that stops waits for that.
func (h *Hub) admit(s *Session, j *job, o *core.Open) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.admits(s); err != nil {
		return err
	}
	work, err := h.quotas.Begin(j.From(), j.Size())
	if err != nil {
		return err
	}
	if o.AsksAgain {
		err = h.absence(j)
	}
	if err == nil {
		err = h.tasks.Open(j.Task, work)
	}
	if err != nil {
		work.End()
		return err
	}
	h.jobs[j.ID()] = j
	h.admitted.Add(1)
	h.enter(s, j, o)
	return nil
}

// absence returns the refusal of a question for which no agent is here, nil if there is one. Callers hold mu.
func (h *Hub) absence(j *job) error {
	c := h.choose(j, false)
	if c.now != nil || c.later != nil {
		return nil
	}
	f := c.refusal()
	if errors.Is(f, &core.Fault{Code: core.CodeUnknownAgent}) || errors.Is(f, &core.Fault{Code: core.CodeUnknownDomain}) {
		return f
	}
	return nil // the task says why
}

// admits returns why a session may open no task now. Callers hold mu.
func (h *Hub) admits(s *Session) error {
	if s.closed {
		return s.ended()
	}
	return h.takes(s)
}

// takes returns why the hub takes no new task from a session, or from any new session if s is nil. Callers
// hold mu.
func (h *Hub) takes(s *Session) error {
	switch {
	case h.end.reason != "" && (s == nil || !h.finishes(s)):
		return h.stopping()
	case h.tasks.FinishedBytes() > h.limits.FinishedBytes+h.limits.UnrecordedBytes:
		return core.NewFault(core.CodeOverloaded, "the journal is behind by more than %d bytes: ask again later", h.limits.UnrecordedBytes)
	}
	return h.canRecord()
}

// NotReady returns why the hub takes no new task, in the words with which it refuses one; nil if it does. It
// asks the journal, and from then on requests are refused for what that says.
func (h *Hub) NotReady() error {
	h.recorder.Health()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.takes(nil)
}

// canRecord returns a Fault if this hub knows that nothing new is recorded: it is cut off, or the journal takes no
// records. What is taken then might be lost.
func (h *Hub) canRecord() error {
	var f *core.Fault
	if err := h.ready(); err != nil {
		f = core.AsFault(err)
	} else if why := h.recorder.Failing(); why != nil {
		f = core.NewFault(core.CodeOverloaded, "this hub cannot record anything and takes nothing new: %s", why)
	} else {
		return nil
	}
	f.RetryAfter = core.Seconds(time.Second)
	return f
}

// enter shows a task that was opened to those who watch all, and notes it in its thread and its
// session. Callers hold mu.
func (h *Hub) enter(s *Session, j *job, o *core.Open) {
	for w := range h.watchers {
		if w != s || o.Unwatched {
			w.view(j.Task, nil)
		}
	}
	if h.broadcast != nil {
		h.broadcast.opened(j.Task)
	}
	if !j.IsNotice() {
		h.begins(j.Thread(), j.ID(), j.From().Account())
		if o.Attends {
			h.questions.Attend(s.identity.Principal, j.Thread())
		}
	}
	if j.IsTurn() {
		h.followers.opened(j.Task, s)
	}
	if !j.IsRemote() {
		h.tellOpened(j.Task)
	}
	h.retain(s, j, o.Keep)
}

// ready is [Remote.Ready].
func (h *Hub) ready() error {
	if h.remote == nil {
		return nil
	}
	return h.remote.Ready()
}

// tellOpened tells others of a task that this hub runs. Callers hold mu.
func (h *Hub) tellOpened(t *task.Task) {
	told := OpenedTask{Task: t.ID()}
	if !t.IsNotice() {
		told.Thread = t.Thread()
	}
	OpenedNews.TellAll(h, told)
}

// begins notes a task of an account in its thread; "" for none. Callers hold mu.
func (h *Hub) begins(in core.ThreadID, id core.TaskID, account string) {
	if in != "" && in != core.ThreadID(id) {
		h.index.Add(in, id, account)
	}
}

// retain notes a task with the session that has opened it. Callers hold mu.
func (h *Hub) retain(s *Session, j *job, beyond bool) {
	s.mu.Lock()
	s.opened.put(j.Task, beyond || s.identity.Keep)
	s.mu.Unlock()
}
