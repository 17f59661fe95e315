package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
)

// holder is the holder of a token, or all callers without one: a session of the hub and the
// calls that run on its behalf.
type holder struct {
	session *hub.Session
	limits  Options

	mu      sync.Mutex
	gone    *core.Fault // why the token is no longer valid
	running map[*call]struct{}
	// parked are the calls that wait for their client to return with an answer of its user,
	// and kept those that clients follow as tasks.
	parked map[string]*run // by their keys
	// direct are the keys of the runs of tools other than agent_ask that have not ended.
	direct map[string]struct{}
	kept   map[*run]struct{}
	// shown are the open questions, with the keys of the runs whose clients were shown them.
	shown map[string]string
	// asked are the questions that were sent to clients, by the id of the request.
	asked map[string]*elicited
}

// call is a running tool call, or a stream.
type call struct {
	session string          // named by the client, or ""
	id      json.RawMessage // nil for a stream without a request
	stream  bool
	cancel  context.CancelCauseFunc
}

// expired reports whether the token has expired. Its calls end with its session.
func (h *holder) expired() bool {
	until := h.session.Identity().Principal.Until
	return !until.IsZero() && !time.Now().Before(until)
}

func newHolder(s *hub.Session, limits Options) *holder {
	return &holder{
		session: s, limits: limits, running: make(map[*call]struct{}),
		parked: make(map[string]*run), direct: make(map[string]struct{}), kept: make(map[*run]struct{}), asked: make(map[string]*elicited), shown: make(map[string]string),
	}
}

// begin admits a call. Its context ends with that of the client, when the client cancels it,
// and with the token. The caller must call end.
func (h *holder) begin(ctx context.Context, c *call) (_ context.Context, end func(), _ *core.Fault) {
	h.mu.Lock()
	defer h.mu.Unlock()
	alike := 0
	for other := range h.running {
		if other.stream == c.stream {
			alike++
		}
	}
	switch {
	case h.gone != nil:
		return nil, nil, h.gone
	case h.session.Rejected() != nil:
		return nil, nil, h.session.Rejected()
	case c.stream && alike >= h.limits.MaxStreams:
		return nil, nil, core.NewFault(core.CodeOverloaded, "%d streams are open under this token: close one, or poll tools/list", alike)
	case !c.stream && alike >= h.limits.MaxCalls:
		return nil, nil, core.NewFault(core.CodeOverloaded, "%d tools are running under this token: wait for one to end", alike)
	}
	ctx, c.cancel = context.WithCancelCause(ctx)
	h.running[c] = struct{}{}
	return ctx, func() {
		c.cancel(nil)
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.running, c)
	}, nil
}

// cancel cancels the request of a client's session. Without a session the request
// cannot be identified: such a client closes the connection instead.
func (h *holder) cancel(session string, id json.RawMessage, why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.running {
		if session != "" && c.session == session && bytes.Equal(c.id, id) {
			c.cancel(core.NewFault(core.CodeCancelled, "the client cancelled the call%s", why))
		}
	}
}

// show notes that a question is shown to the client of a run, or has been settled.
func (h *holder) show(u *question.Update, run string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if u.Outcome != nil {
		delete(h.shown, u.Question.ID)
	} else {
		h.shown[u.Question.ID] = run
	}
}

// shows reports whether a question is shown to the client of a run.
func (h *holder) shows(question, run string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return run != "" && h.shown[question] == run
}

// begun notes that a run of a tool other than agent_ask has begun.
func (h *holder) begun(run string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.direct[run] = struct{}{}
}

// isRunning reports whether a run of a tool other than agent_ask has not ended.
func (h *holder) isRunning(run string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, running := h.direct[run]
	return running
}

// forgetRun forgets a run that has ended, and the questions that were shown to its client.
func (h *holder) forgetRun(run string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.direct, run)
	maps.DeleteFunc(h.shown, func(_, of string) bool { return of == run })
}

// leave ends all calls, also those that wait for their client. Tasks that clients follow
// continue.
func (h *holder) leave(why *core.Fault) {
	h.mu.Lock()
	if h.gone != nil {
		h.mu.Unlock()
		return
	}
	h.gone = why
	for c := range h.running {
		c.cancel(why)
	}
	var left []*run
	for key, r := range h.parked {
		r.expiry.Stop()
		delete(h.parked, key)
		left = append(left, r)
	}
	for r := range h.kept {
		delete(h.kept, r)
		left = append(left, r)
	}
	h.mu.Unlock()
	for _, r := range left {
		if r.release != nil {
			r.release()
		}
		r.close(why)
	}
}
