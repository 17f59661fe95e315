package acp

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// Where there are other hubs, an envelope that opens a task waits for what they know of it. The reader
// of a connection goes on meanwhile: what may open tasks, and the cancels after it, wait in a line.

// Bounds of a line.
const (
	maxLine      = 256
	maxLineBytes = 4 << 20
)

// line has the envelopes that wait, in order. session.mu guards it.
type line struct {
	open      bool // somebody takes envelopes out of it
	envelopes []wire.Envelope
	bytes     int
}

// opens reports whether an envelope opens a task, and may come again at another hub.
func (s *session) opens(e wire.Envelope) bool {
	switch e.Kind {
	case wire.KindQuery, wire.KindDelegate, wire.KindNotify:
		return true
	}
	if e.Kind.Known() {
		return false
	}
	a, _ := s.assigned(e.Ref)
	return a == nil // else it belongs to a task of the peer
}

// lineUp puts an envelope in the line, if it has to wait. A peer that sends too many gets an error.
func (s *session) lineUp(ctx context.Context, e wire.Envelope) (waits bool, err error) {
	if s.mayWait || !s.hub.RPC().HasPeers() {
		return false, nil
	}
	opens := s.opens(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.line
	switch {
	case !opens && (!l.open || e.Kind != wire.KindCancel):
		return false, nil
	case len(l.envelopes) >= maxLine || len(l.envelopes) > 0 && l.bytes+len(e.Raw) > maxLineBytes:
		return true, core.NewFault(core.CodeOverloaded, "other hubs are being asked about what you sent before: wait for the answers to that")
	}
	l.envelopes = append(l.envelopes, e)
	l.bytes += len(e.Raw)
	if !l.open {
		l.open = true
		s.lined.Go(func() { s.serveLine(context.WithoutCancel(ctx)) }) // what was sent is done even if the peer has hung up
	}
	return true, nil
}

// serveLine acts on the envelopes in the line, until there are none.
func (s *session) serveLine(ctx context.Context) {
	for {
		s.mu.Lock()
		if len(s.line.envelopes) == 0 {
			s.line = line{}
			s.mu.Unlock()
			return
		}
		e := s.line.envelopes[0]
		s.line.envelopes = s.line.envelopes[1:]
		s.line.bytes -= len(e.Raw)
		s.mu.Unlock()
		if s.do(ctx, e) != nil {
			return // the connection has ended
		}
	}
}

// open opens a task for an envelope, unless that came before, at whichever hub and in whichever life of one.
// keep lets it run on when the peer has left.
func (s *session) open(ctx context.Context, e wire.Envelope, req core.Request, r *request, keep bool) error {
	if r.kind == wire.KindPing {
		return s.openTask(e, req, r, keep, "")
	}
	sum := sha256.New()
	for _, text := range [...]string{string(e.Kind), "\x00", e.To, "\x00", e.Ref, "\x00", string(e.Payload)} {
		_, _ = sum.Write([]byte(text)) // hash.Hash never fails
	}
	sent := hub.Repeatable{Owner: s.peer.principal, Name: string(s.peer.id) + "\x00" + e.ID, Content: [sha256.Size]byte(sum.Sum(nil))}
	id, known, err := s.peers.keys.Once(ctx, sent, func(key string) (core.TaskID, error) {
		err := s.openTask(e, req, r, keep, key)
		return r.task, err
	})
	switch {
	case errors.Is(err, hub.ErrOtherContent):
		return s.peers.seen.conflict(e.ID)
	case err == nil && known:
		s.hub.Count("acp.duplicate")
		return s.resume(ctx, e, req, r, id)
	}
	return err
}

// resume has the peer get the answer of a task that the same envelope has opened before, at another hub or in an
// earlier life of this one.
func (s *session) resume(ctx context.Context, e wire.Envelope, req core.Request, r *request, id core.TaskID) error {
	if e.Kind == wire.KindDelegate {
		if err := s.answer(ctx, wire.KindAck, e.ID, wire.Ack{Accepted: true}); err != nil {
			return err
		}
	}
	if e.Kind == wire.KindNotify || s.findRequest(e.ID) != nil { // else its result is fetched: see fetchPending
		return nil
	}
	t, err := s.hub.Task(ctx, s.principal, id)
	if err != nil {
		return err
	}
	r.inherited, r.task, r.deadline = true, id, req.Deadline
	if r.deadline.IsZero() {
		r.deadline = time.Now().Add(s.opts.Deadline)
	}
	s.mu.Lock()
	s.requests[r.id] = r
	s.mu.Unlock()
	return s.self.Watch(t, core.Cursor{}, r)
}
