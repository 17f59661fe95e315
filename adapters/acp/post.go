package acp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/roster"
)

const (
	headerAgentID = "X-Agent-Id"
	paramAgentID  = "agent_id"
)

// ServeHTTP implements http.Handler.
//
//	POST  sends one envelope; 200 with the answer, 202 when none is due, or an error
//	      envelope with the status of its code
//	GET   streams the envelopes for the peer of X-Agent-Id or ?agent_id= as server-sent
//	      events; Last-Event-ID resumes
func (x *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
		x.post(w, r)
	case http.MethodGet:
		x.stream(w, r)
	default:
		w.Header().Set("Allow", "GET, POST")
		x.fail(w, wire.Envelope{}, http.StatusMethodNotAllowed, wire.Refusef(wire.CodeInvalidEnvelope, "%s is not used here: POST an envelope, or GET the stream of what arrives", r.Method))
	}
}

// identify returns the sender of a request, from authentication, the header or parameter,
// and the from of the envelope. They must agree.
func (x *HTTP) identify(r *http.Request, from string) (p core.Principal, id core.AgentID, err error) {
	if x.opts.Identify != nil {
		if p, id, err = x.opts.Identify(r); err != nil {
			return p, id, err
		}
	}
	header, param := r.Header.Get(headerAgentID), r.URL.Query().Get(paramAgentID)
	if id == "" && p.Authenticated {
		id = core.AgentID(cmp.Or(header, param, p.ID))
	}
	for _, stated := range []string{header, param, from} {
		switch {
		case stated == "":
		case id == "":
			id = core.AgentID(stated)
		case roster.SameAgent(stated, id):
		case p.Authenticated && header == "" && param == "":
			return p, id, wire.Refusef(wire.CodeNotAuthorized, "your token makes you %q, not %q: leave from out, or say in the header %s which agent you are", id, stated, headerAgentID)
		default:
			return p, id, wire.Refusef(wire.CodeNotAuthorized, "you are %q and %q at once: send one identity", id, stated)
		}
	}
	if id == "" {
		return p, id, wire.Refusef(wire.CodeInvalidEnvelope, "say who you are: in the header %s, by ?%s=, or in the from of a POST", headerAgentID, paramAgentID)
	}
	return p, id, nil
}

// post handles a POST of one envelope.
func (x *HTTP) post(w http.ResponseWriter, r *http.Request) {
	limit := x.opts.Session.MaxEnvelopeBytes
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(limit)))
	if err != nil {
		var over *http.MaxBytesError
		if errors.As(err, &over) {
			x.refuse(w, wire.Envelope{}, wire.Refusef(wire.CodeTooLarge, "the envelope has more than %d bytes: send less, or a reference to it", limit))
			return
		}
		x.refuse(w, wire.Envelope{}, wire.Refusef(wire.CodeInvalidEnvelope, "the body could not be read: %s", err))
		return
	}
	// The server's deadline is for the body; the answer may take longer.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	e, err := wire.Decode(body, limit)
	var p core.Principal
	var id core.AgentID
	if err == nil {
		p, id, err = x.identify(r, e.From)
	}
	if r.Body = io.NopCloser(bytes.NewReader(body)); err == nil && x.passOn(w, r, p, id) {
		return
	}
	var c *caller
	if err == nil {
		c, err = x.acquire(r.Context(), p, id)
	}
	if err != nil {
		x.refuse(w, e, err)
		return
	}
	defer x.release(c)
	if err := e.Check(); err != nil {
		c.s.failRefused(e, wire.AsError(err))
		x.refuse(w, e, err)
		return
	}
	x.exchange(w, r, c, e)
}

// exchange hands an envelope to the session and writes the answer.
func (x *HTTP) exchange(w http.ResponseWriter, r *http.Request, c *caller, e wire.Envelope) {
	answer := c.await(e.ID)
	if answer == nil {
		x.refuse(w, e, c.s.peers.seen.conflict(e.ID))
		return
	}
	defer c.stopAwaiting(e.ID)
	e.Carrier = core.TraceOf(r.Header)
	s := c.s
	s.self.Seen()
	var err error
	if _, same, fresh := s.peers.seen.add(s.peer, e, s.number); fresh {
		err = c.act(r.Context(), e)
	} else {
		s.hub.Count("acp.duplicate")
		err = s.duplicate(r.Context(), e, same)
	}
	if err != nil {
		x.refuse(w, e, err)
		return
	}
	if !e.Kind.Asks() || e.Kind == wire.KindHello && e.Ref != "" {
		select {
		case m := <-answer:
			x.write(w, statusFor(m), m.json)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
		return
	}
	select {
	case m := <-answer:
		x.write(w, statusFor(m), m.json)
	case <-r.Context().Done():
		c.stopAwaiting(e.ID)
		select {
		case m := <-answer: // the answer came as the peer hung up
			if s.opts.KeepTasks || e.Kind == wire.KindDelegate {
				c.mailbox.put(m)
			}
		default:
			s.abandon(e.ID)
		}
	case <-c.ended:
		select {
		case m := <-answer:
			x.write(w, statusFor(m), m.json)
		default:
			x.refuse(w, e, core.NewFault(core.CodeUnreachable, "the hub is stopping: ask again"))
		}
	}
}

// act has the session act on an envelope. What another one became that is handled at the same time is
// not taken for what this one became.
func (c *caller) act(ctx context.Context, e wire.Envelope) error {
	switch e.Kind {
	case wire.KindCapabilities, wire.KindPing, wire.KindHello: // they are of no task, and may wait for a sign of life
		return c.s.act(c.frames.Telling(ctx, "", false, 0), e)
	}
	if c.frames == nil {
		return c.s.act(ctx, e)
	}
	c.acting.Lock()
	defer c.acting.Unlock()
	c.frames.Receive(e.Raw)
	defer c.frames.Received()
	return c.s.act(frame.Reading(ctx), e)
}

// statusFor returns the HTTP status of an answer.
func statusFor(m message) int {
	if m.kind != wire.KindError {
		return http.StatusOK
	}
	var refusal wire.Error
	if (wire.Envelope{Kind: m.kind, Payload: wire.ValueOf(m.json, "payload")}).Read(&refusal) != nil {
		return http.StatusInternalServerError
	}
	return refusal.Status()
}

// Refuse answers a request that is refused before it is read, with an error envelope and
// the status of err.
func (x *HTTP) Refuse(w http.ResponseWriter, err error) { x.refuse(w, wire.Envelope{}, err) }

// refuse answers with an error envelope.
func (x *HTTP) refuse(w http.ResponseWriter, e wire.Envelope, err error) {
	refusal := wire.AsError(err)
	status := refusal.Status()
	var f *core.Fault
	if errors.As(err, &f) {
		status = cmp.Or(wire.HTTPStatus(f.Code), status)
		if seconds := f.RetryAfter.Whole(); seconds > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(seconds))
		}
	}
	x.fail(w, e, status, refusal)
}

func (x *HTTP) fail(w http.ResponseWriter, e wire.Envelope, status int, refusal *wire.Error) {
	x.hub.Count("acp.error." + string(refusal.Code))
	x.write(w, status, wire.New(wire.KindError, wire.HubID, e.From, e.ID, refusal).Encode())
}

// write answers with an envelope. A reader that is too slow is cut off.
func (x *HTTP) write(w http.ResponseWriter, status int, envelope []byte) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout)) // not every ResponseWriter has one
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(envelope) // the peer may have gone
}
