package pack

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/timer"
)

// sessions are those of a legacy server, one after the other: a server that is started again knows none
// of before. Its methods may be called concurrently.
type sessions struct {
	renewing chan struct{} // holds a token while another one begins
	again    timer.Pace    // of the holder

	mu      sync.Mutex
	present string // "" without one
	offered string // by the latest answer to initialize
	begun   int
}

// The pauses before a session in place of one that the server has forgotten.
const (
	firstSession  = 100 * time.Millisecond
	seldomSession = 5 * time.Second
)

func newSessions() sessions {
	return sessions{renewing: make(chan struct{}, 1), again: timer.Pace{First: firstSession, Most: seldomSession}}
}

// now returns the present session.
func (s *sessions) now() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.present
}

// count returns how many sessions have begun.
func (s *sessions) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

// offer notes the session of an answer to initialize, which becomes the present one with take.
func (s *sessions) offer(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offered = session
}

func (s *sessions) take() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.present, s.begun = s.offered, s.begun+1
}

var errExpired = errors.New("the server has forgotten the session")

// expired is the failure of a server that has forgotten the session.
func (t *remote) expired() *core.Fault {
	return t.server.fail(core.CodeUnreachable, "has forgotten the session of the hub: call again").Because(errExpired)
}

// forgotten reports whether a server refuses a request because it does not know the session, and so has
// not taken it: with 404 (2025-11-25, basic/transports, "Session Management"), or with 400 and an error
// that is not the response to the request, as servers of the official SDKs do that have been started
// again.
func forgotten(status int, body []byte, m jsonrpc.Message, r request) bool {
	switch {
	case r.method == wire.MethodInitialize || r.method == wire.MethodDiscover:
		return false
	case status == http.StatusNotFound:
		return m.Err == nil || m.Err.Code != jsonrpc.CodeMethodNotFound
	case status == http.StatusBadRequest && (r.id == nil || !bytes.Equal(m.ID, r.id)):
		body = bytes.ToLower(body)
		return bytes.Contains(body, []byte("session")) || bytes.Contains(body, []byte("not initialized"))
	}
	return false
}

// mayHaveForgotten reports whether an answer to a GET says that the server does not know the session.
func (t *remote) mayHaveForgotten(resp *http.Response) bool {
	status := resp.StatusCode
	if t.sessions.now() == "" || status != http.StatusNotFound && status != http.StatusBadRequest {
		return false
	}
	body, _ := readBody(resp.Body, slack)
	m, _ := jsonrpc.Read(body, strictjson.Limits{})
	return forgotten(status, body, m, request{})
}

// reassure asks a server that may have forgotten the session of a stream, which begins another session then,
// and returns io.EOF. It returns errNoStream if the server knows the session: it knows no GET.
func (t *remote) reassure(ctx context.Context, begun int) error {
	if _, err := t.exchangeInSession(ctx, request{id: t.server.newID(), method: wire.MethodPing}); err != nil {
		return err
	}
	if t.sessions.count() == begun {
		return errNoStream
	}
	return io.EOF
}

// exchangeInSession is exchange, once more in another session if the server has forgotten the present
// one. One that forgets that as well is lost.
func (t *remote) exchangeInSession(ctx context.Context, r request) (jsonrpc.Message, error) {
	begun := t.sessions.count()
	m, err := t.exchange(ctx, r)
	if !errors.Is(err, errExpired) {
		return m, err
	}
	if err := t.renew(ctx, begun); err != nil {
		return jsonrpc.Message{}, err
	}
	if m, err = t.exchange(ctx, r); errors.Is(err, errExpired) {
		t.lose(err)
	}
	return m, err
}

// renew begins a session in place of one that the server has forgotten, unless one has begun since begun
// had. The error says why there is none; unless that is the cause of ctx, the server is lost.
func (t *remote) renew(ctx context.Context, begun int) error {
	select {
	case t.sessions.renewing <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-t.sessions.renewing }()
	if t.sessions.count() != begun {
		return nil
	}
	if err := t.sessions.again.Wait(ctx); err != nil {
		return err
	}
	t.server.count("session")
	e, err := t.server.begun(t.server.hello(ctx), "")
	if err == nil {
		t.sessions.mu.Lock()
		offered := t.sessions.offered
		t.sessions.mu.Unlock()
		err = t.sendIn(ctx, offered, initialized()) // before others use it
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil && e != t.server.era():
		err = t.expired() // it is another server: the next run finds out which
	}
	if err != nil {
		t.lose(err)
		return err
	}
	t.sessions.take()
	t.server.toolsChanged()
	return nil
}
