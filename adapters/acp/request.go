package acp

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/roster"
)

// request is a task that the peer opened. It is the tag of the task in the hub's session.
type request struct {
	id   string // of its envelope
	kind wire.Kind
	// reports is set when the end is sent to the peer even if the task succeeds.
	reports bool
	// live is set when events are sent as progress: the peer had declared the extension
	// when it opened the task.
	live bool
	seq  uint64 // the number of the last progress envelope
	// missedPieces is set when the peer did not get pieces of text or files, endHasFiles
	// when the envelope that ends the task has files.
	missedPieces, endHasFiles bool
	// endEvents are the events that the peer gets only with the end.
	endEvents []core.Event
	// inherited is set when an earlier connection opened the task: only its end is sent.
	inherited bool
	abandoned bool // nobody waits for the answer any more; guarded by session.mu
	// cancelling is closed once a cancel is acknowledged, which the end must not overtake;
	// nil while there is no cancel. Guarded by session.mu.
	cancelling chan struct{}
	deadline   time.Time
	task       core.TaskID
}

// ask opens a task for a query or a delegate. Only deliver sends answers, so that they
// stay in order.
func (s *session) ask(ctx context.Context, e wire.Envelope) error {
	req, err := s.readRequest(e)
	if err == nil {
		r := &request{id: e.ID, kind: e.Kind, reports: e.Kind == wire.KindQuery || req.ReportBack}
		err = s.open(ctx, e, req, r, e.Kind == wire.KindDelegate)
	}
	return s.refuseIf(ctx, e, err)
}

// refuseIf refuses an envelope if err is not nil, and lets its id be used again.
func (s *session) refuseIf(ctx context.Context, e wire.Envelope, err error) error {
	if err == nil {
		return nil
	}
	s.peers.seen.forget(s.peer, e.ID)
	return s.refuse(ctx, e, err)
}

// openTask opens a task for an envelope, with a key of [hub.Keys] or "". keep lets it run on when the
// peer has left.
func (s *session) openTask(e wire.Envelope, req core.Request, r *request, keep bool, key string) error {
	if s.findRequest(e.ID) != nil {
		return wire.Refusef(wire.CodeConflict, "what you asked under the id %q is still under way: send this one with a fresh id", e.ID)
	}
	if agent, here := s.hub.Reach(s.principal, req.To.Agent()); req.To.Agent() == "" || here && agent.Dialect == Dialect {
		req.Foreign = &core.Foreign{Dialect: Dialect, JSON: e.Raw}
	}
	r.deadline = req.Deadline
	if r.deadline.IsZero() {
		r.deadline = time.Now().Add(s.opts.Deadline)
	}
	// deliver takes the lock before it sends anything of the task.
	s.mu.Lock()
	defer s.mu.Unlock()
	r.live = s.progress && (r.kind == wire.KindQuery || r.kind == wire.KindDelegate)
	t, err := s.self.Open(req, hub.OpenOptions{Keep: keep, Private: r.kind.Passes(), Tag: r, Trace: e.Trace(), Key: key})
	if err != nil {
		return err
	}
	r.task = t.ID()
	s.requests[r.id] = r
	return nil
}

// readRequest reads a query or a delegate.
func (s *session) readRequest(e wire.Envelope) (req core.Request, err error) {
	now := time.Now()
	if req, err = e.Request(now); err != nil {
		return req, err
	}
	if e.Kind == wire.KindDelegate && req.Deadline.IsZero() {
		req.Deadline = now.Add(s.opts.DelegateDeadline)
	}
	if req.To, err = s.address(e.To); err != nil {
		return req, err
	}
	if req.To.IsZero() {
		req.To = core.ToAny()
		if req.Domain != "" {
			if req.To, err = core.ParseAddress("domain:" + req.Domain); err != nil {
				return req, err
			}
		}
	}
	if e.Ref != "" {
		// The peer asks because it works on another task.
		if a, _ := s.assigned(e.Ref); a != nil {
			req.Cause = a.task
		}
	}
	return req, nil
}

// address parses the to of an envelope: the text form of an address, or the id of the
// hub. An empty one yields the zero Address.
func (s *session) address(to string) (core.Address, error) {
	a, err := core.ParseAddress(to)
	if err != nil || a.Agent() == "" {
		return a, err
	}
	if _, here := s.hub.Reach(s.principal, a.Agent()); !here && (to == s.hub.ID() || roster.SameAgent(to, wire.HubID)) {
		return core.ToHub(), nil
	}
	return a, nil
}

// notify sends a notice to its recipient and to the subscribers of its topic. Context for
// a request of the peer is injected into that task.
func (s *session) notify(ctx context.Context, e wire.Envelope) error {
	var n wire.Notify
	err := e.Read(&n)
	if err == nil {
		var r *request
		if r, err = s.inject(e, n); r != nil || err != nil {
			return s.refuseIf(ctx, e, err)
		}
	}
	var to core.Address
	if err == nil {
		to, err = s.address(e.To)
	}
	switch {
	case err != nil:
	case n.Topic == wire.TopicContext:
		err = wire.Refusef(wire.CodePeerNotFound, "the ref in data is no query or delegate of yours that runs: send its id")
	case to.IsZero():
		to = core.ToHub() // for the subscribers of its topic
	}
	if err == nil {
		req := n.Request()
		req.To = to
		err = s.open(ctx, e, req, &request{id: e.ID, kind: wire.KindNotify}, true)
	}
	return s.refuseIf(ctx, e, err)
}

// inject injects the context in a notice into the request that it names. It returns nil
// and no error when the notice is something else, or names no request.
func (s *session) inject(e wire.Envelope, n wire.Notify) (*request, error) {
	if n.Topic != wire.TopicContext {
		return nil, nil
	}
	var c wire.Context
	data := e.Content().Get("data")
	err := errors.New("missing")
	if data.Exists() {
		err = data.Decode(&c)
	}
	if err != nil {
		return nil, wire.Refusef(wire.CodeInvalidEnvelope, `data of %s: %s; send {"ref":"the id of your query","content":"..."}`, wire.TopicContext, err)
	}
	r := s.findRequest(cmp.Or(c.Ref, e.Ref))
	if r == nil {
		return nil, nil
	}
	in := core.Injected{ID: cmp.Or(c.ID, e.ID), Content: c.Content, Source: c.Source, Trace: e.Trace()}
	if err := in.Priority.UnmarshalText([]byte(c.Priority)); err != nil {
		return nil, err
	}
	return r, s.self.Inject(hub.NoWait, r.task, in)
}

// cancel cancels a request of the peer. The ack says whether there was one to cancel.
func (s *session) cancel(ctx context.Context, e wire.Envelope) error {
	var c wire.Cancel
	if err := e.Read(&c); err != nil {
		return s.refuseIf(ctx, e, err)
	}
	r, acked := s.beginCancel(e.Ref)
	defer acked()
	if a, ended := s.assigned(e.Ref); r == nil && a != nil && !ended {
		s.hub.Count("acp.refused." + core.KindCancelRequested.String())
		return s.refuseIf(ctx, e, wire.Refusef(wire.CodeUnsupported, "ref %q is something that you were asked: to stop it, answer it with an error of code cancelled", e.Ref))
	}
	return s.answer(ctx, wire.KindAck, e.ID, wire.Ack{Accepted: r != nil && s.self.Cancel(r.task, c.Reason) == nil})
}

// findRequest returns the request with an id, on whichever connection of the peer, or nil.
func (s *session) findRequest(id string) *request {
	r, _ := s.find(id, func(*request) {})
	return r
}

// beginCancel is findRequest for a cancel: the end of the request waits until acked is
// called.
func (s *session) beginCancel(id string) (r *request, acked func()) {
	ch := make(chan struct{})
	first := false
	r, o := s.find(id, func(r *request) {
		if first = r.cancelling == nil; first {
			r.cancelling = ch
		}
	})
	if !first {
		return r, func() {}
	}
	return r, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		r.cancelling = nil
		close(ch)
	}
}

// find returns the request with an id and the session that opened it, having called do
// with that session's mu held.
func (s *session) find(id string, do func(*request)) (*request, *session) {
	for _, o := range s.peers.connections(s.peer) {
		o.mu.Lock()
		r := o.requests[id]
		if r != nil {
			do(r)
		}
		o.mu.Unlock()
		if r != nil {
			return r, o
		}
	}
	return nil, nil
}

// abandon cancels a query or a ping whose sender has hung up, unless tasks are kept. A
// delegate goes on.
func (s *session) abandon(id string) {
	s.mu.Lock()
	r := s.requests[id]
	if r == nil || r.kind == wire.KindDelegate || s.opts.KeepTasks {
		s.mu.Unlock()
		return
	}
	r.abandoned = true
	s.mu.Unlock()
	_ = s.self.Cancel(r.task, "the requester hung up") // the task may have ended by now
}

// inherit watches the delegates of an earlier connection of the peer, so that their
// results come here. It reports false when the session has been closed meanwhile. It may
// wait for the journal, never for a peer.
func (s *session) inherit(due []pendingResult) bool {
	for _, o := range due {
		t, err := s.hub.Task(context.Background(), s.principal, o.task)
		if err != nil {
			s.log.Info("a result is no longer kept", "task", o.task, "error", err)
			continue
		}
		r := &request{id: o.id, kind: wire.KindDelegate, reports: o.reports, inherited: true, deadline: o.until.Add(-s.peers.keep), task: o.task}
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return false
		}
		s.requests[r.id] = r
		s.mu.Unlock()
		if err := s.self.Watch(t, core.Cursor{}, r); err != nil {
			s.log.Warn("a result cannot be watched", "task", o.task, "error", err)
		}
	}
	return true
}
