package acp

import (
	"context"
	"errors"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/roster"
)

// asked is a task that the peer opened: what it tags the task with.
type asked struct {
	id   string // of its envelope
	kind wire.Kind
	// reports says that something is to follow the first answer.
	reports bool
	// live says that what happens on the way is told, by progress: the peer had
	// declared the extension when it asked.
	live bool
	told uint64 // how many progress envelopes it was told
	// pieces says that text or files came in pieces that it was not told, attached
	// that the envelope which ends the task has files.
	pieces, attached bool
	// withEnd is what the peer gets with the end alone.
	withEnd []core.Event
	// inherited says that an earlier connection asked: only the end is news.
	inherited bool
	abandoned bool // nobody waits for it any more; guarded by session.mu
	// stopping is closed once a cancel of it has its ack, which the end must not
	// overtake; nil while there is none. Guarded by session.mu of who asked.
	stopping chan struct{}
	until    time.Time // the deadline
	task     core.TaskID
}

// ask opens a task for a query or a delegate. Its first answer comes from the pump,
// so that nothing can overtake it.
func (s *session) ask(ctx context.Context, e wire.Envelope) error {
	req, err := s.request(e)
	if err == nil {
		a := &asked{id: e.ID, kind: e.Kind, reports: e.Kind == wire.KindQuery || req.ReportBack}
		err = s.open(e, req, a, e.Kind == wire.KindDelegate)
	}
	return s.unlessRefused(ctx, e, err)
}

// unlessRefused tells the peer why nothing was done. Its id may be used again.
func (s *session) unlessRefused(ctx context.Context, e wire.Envelope, err error) error {
	if err == nil {
		return nil
	}
	s.peers.seen.forget(s.peer, e.ID)
	return s.refuse(ctx, e, err)
}

// open opens a task for an envelope.
func (s *session) open(e wire.Envelope, req core.Request, a *asked, keep bool) error {
	if s.own(e.ID) != nil {
		return wire.Refusef(wire.CodeConflict, "what you asked under the id %q is still under way: send this one with a fresh id", e.ID)
	}
	if id := req.To.Agent(); id == "" || s.speaksACP(id) {
		req.Foreign = &core.Foreign{Dialect: Dialect, JSON: e.Raw}
	}
	a.until = req.Deadline
	if a.until.IsZero() {
		a.until = time.Now().Add(s.opts.Deadline)
	}
	// The pump waits for the lock before it tells anything of the task.
	s.mu.Lock()
	defer s.mu.Unlock()
	a.live = s.progress && (a.kind == wire.KindQuery || a.kind == wire.KindDelegate)
	t, err := s.self.Open(req, hub.Opening{Keep: keep, Private: a.kind.Passes(), Tag: a})
	if err != nil {
		return err
	}
	a.task = t.ID()
	s.asked[a.id] = a
	return nil
}

func (s *session) speaksACP(id core.AgentID) bool {
	a, ok := s.hub.Reach(id)
	return ok && a.Dialect == Dialect
}

// request reads a query or a delegate.
func (s *session) request(e wire.Envelope) (req core.Request, err error) {
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
		// A question asked because of another: which of its jobs it is for.
		s.mu.Lock()
		if j := s.jobs[e.Ref]; j != nil {
			req.Cause = j.task
		}
		s.mu.Unlock()
	}
	return req, nil
}

// address reads the to of an envelope: the text form of an address, or the id of
// the hub. Empty yields the zero Address.
func (s *session) address(to string) (core.Address, error) {
	a, err := core.ParseAddress(to)
	if err != nil || a.Agent() == "" {
		return a, err
	}
	if _, here := s.hub.Reach(a.Agent()); !here && (to == s.hub.ID() || roster.SameAgent(to, wire.HubID)) {
		return core.ToHub(), nil
	}
	return a, nil
}

// notify tells somebody something, and those who subscribe to its topic. A notice of
// context for what the peer asked goes into that task.
func (s *session) notify(ctx context.Context, e wire.Envelope) error {
	var n wire.Notify
	err := e.Read(&n)
	if err == nil {
		var a *asked
		if a, err = s.inject(e, n); a != nil || err != nil {
			return s.unlessRefused(ctx, e, err)
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
		to = core.ToHub() // for who subscribes to its topic
	}
	if err == nil {
		req := n.Request()
		req.To = to
		err = s.open(e, req, &asked{id: e.ID, kind: wire.KindNotify}, true)
	}
	return s.unlessRefused(ctx, e, err)
}

// inject passes context on to a task that the peer asked for. It returns nil and
// no error when the notice is something else.
func (s *session) inject(e wire.Envelope, n wire.Notify) (*asked, error) {
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
	if c.Ref == "" {
		c.Ref = e.Ref
	}
	a := s.own(c.Ref)
	if a == nil {
		return nil, nil
	}
	in := core.Injected{ID: c.ID, Content: c.Content, Source: c.Source}
	if in.ID == "" {
		in.ID = e.ID
	}
	if err := in.Priority.UnmarshalText([]byte(c.Priority)); err != nil {
		return nil, err
	}
	return a, s.self.Inject(a.task, in)
}

// cancel stops what the peer asked, as far as that is still possible: the ack says
// truthfully whether there was something to stop.
func (s *session) cancel(ctx context.Context, e wire.Envelope) error {
	var c wire.Cancel
	if err := e.Read(&c); err != nil {
		return s.unlessRefused(ctx, e, err)
	}
	a, acked := s.stopping(e.Ref)
	defer acked()
	s.mu.Lock()
	job := s.jobs[e.Ref]
	s.mu.Unlock()
	if a == nil && job != nil && !job.ended {
		s.hub.Count("acp.refused." + core.KindCancelRequested.String())
		return s.unlessRefused(ctx, e, wire.Refusef(wire.CodeUnsupported, "ref %q is something that you were asked: to stop it, answer it with an error of code cancelled", e.Ref))
	}
	if a == nil || s.self.Cancel(a.task, c.Reason) != nil {
		return s.answer(ctx, wire.KindAck, e.ID, wire.Ack{Accepted: false})
	}
	return s.answer(ctx, wire.KindAck, e.ID, wire.Ack{Accepted: true})
}

// own returns what the peer asked under an id, on whichever of its connections, or nil.
func (s *session) own(id string) *asked {
	a, _ := s.find(id, func(*asked) {})
	return a
}

// stopping is own for a cancel: the end of what it returns waits until acked is called.
func (s *session) stopping(id string) (a *asked, acked func()) {
	ch := make(chan struct{})
	first := false
	a, o := s.find(id, func(a *asked) {
		if first = a.stopping == nil; first {
			a.stopping = ch
		}
	})
	if !first {
		return a, func() {}
	}
	return a, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		a.stopping = nil
		close(ch)
	}
}

// find returns what the peer asked under an id and the session of the connection on
// which it did, having called do with that session's mu held.
func (s *session) find(id string, do func(*asked)) (*asked, *session) {
	for _, o := range s.peers.connections(s.peer) {
		o.mu.Lock()
		a := o.asked[id]
		if a != nil {
			do(a)
		}
		o.mu.Unlock()
		if a != nil {
			return a, o
		}
	}
	return nil, nil
}

// abandon cancels a query or a ping whose sender has hung up, unless tasks are kept.
// What was delegated goes on.
func (s *session) abandon(id string) {
	s.mu.Lock()
	a := s.asked[id]
	if a == nil || a.kind == wire.KindDelegate || s.opts.KeepTasks {
		s.mu.Unlock()
		return
	}
	a.abandoned = true
	s.mu.Unlock()
	_ = s.self.Cancel(a.task, "the requester hung up") // it may have ended by now
}

// inherit looks on at what an earlier connection of the peer asked, so that its
// results come here. It reports false when the session has been closed meanwhile.
// It may wait for the journal, never for a peer.
func (s *session) inherit(due []owing) bool {
	for _, o := range due {
		t, err := s.hub.Task(context.Background(), s.principal, o.task)
		if err != nil {
			s.log.Info("a result is no longer there", "task", o.task, "error", err)
			continue
		}
		a := &asked{id: o.id, kind: wire.KindDelegate, reports: o.reports, inherited: true, until: o.until.Add(-s.peers.keep), task: o.task}
		s.mu.Lock()
		if s.gone {
			s.mu.Unlock()
			return false
		}
		s.asked[a.id] = a
		s.mu.Unlock()
		if err := s.self.Watch(t, core.Cursor{}, a); err != nil {
			s.log.Warn("a result cannot be watched", "task", o.task, "error", err)
		}
	}
	return true
}
