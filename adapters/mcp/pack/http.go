package pack

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/timer"
)

// remote is the transport of streamable HTTP (2025-11-25 and 2026-07-28, basic/transports):
// a POST for each message, whose answer is one message or a stream of them.
type remote struct {
	server   *server
	checking atomic.Bool
	checks   timer.Pace // of who is checking
	sessions sessions   // of a legacy server

	mu   sync.Mutex
	gone chan struct{}
	why  error
}

func newRemote(s *server) *remote {
	t := &remote{server: s, gone: make(chan struct{}), checks: timer.Pace{First: firstCheck, Most: seldomCheck}, sessions: newSessions()}
	s.conn = t
	return t
}

// slack is what a message has beyond the result of a call.
const slack = 64 << 10

func (t *remote) call(ctx context.Context, r request) (jsonrpc.Message, error) {
	m, err := t.exchangeInSession(ctx, r)
	switch {
	case err == nil:
		return m, nil
	case ctx.Err() == nil:
		if errors.Is(err, &core.Fault{Code: core.CodeUnreachable}) {
			t.check()
		}
		return m, err
	case !r.quiet && !t.server.era().modern: // the end of a legacy stream is no cancel
		t.server.respond(cancelled(r.id, context.Cause(ctx)))
	}
	return m, context.Cause(ctx)
}

// checkTime bounds the check of [remote.check]; the others are the pauses between two of them.
const (
	checkTime   = 5 * time.Second
	firstCheck  = 250 * time.Millisecond
	seldomCheck = 5 * time.Second
)

// check finds out whether the server is still there, after a request failed: one connection
// may be lost without the others.
func (t *remote) check() {
	e := t.server.era()
	if e.version == "" || !t.checking.CompareAndSwap(false, true) {
		return
	}
	t.server.goroutines.Go(func() {
		defer t.checking.Store(false)
		if t.checks.Wait(t.server.ctx) != nil {
			return
		}
		ctx, cancel := context.WithTimeoutCause(t.server.ctx, checkTime, t.server.fail(core.CodeUnreachable, "did not answer within %s", checkTime))
		defer cancel()
		r := request{id: t.server.newID(), method: wire.MethodPing}
		if e.modern {
			r.method, r.params = wire.MethodDiscover, t.server.params(e, "", "")
		}
		if _, err := t.exchange(ctx, r); errors.Is(err, &core.Fault{Code: core.CodeUnreachable}) && !errors.Is(err, errExpired) {
			t.lose(err)
		}
	})
}

// exchange sends a request and reads until its response. Its error wraps errExpired if the server has not
// taken the request, since it does not know the session.
func (t *remote) exchange(ctx context.Context, r request) (jsonrpc.Message, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := t.post(ctx, jsonrpc.AppendRequest(nil, r.id, r.method, r.params), r)
	if err != nil {
		return jsonrpc.Message{}, t.unreachable(ctx, err)
	}
	defer func() { resp.Body.Close() }()
	if r.method == wire.MethodInitialize {
		t.sessions.offer(resp.Header.Get(wire.HeaderSession))
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode >= http.StatusMultipleChoices:
		return t.refused(resp, r)
	case media == "application/json":
		body, err := readBody(resp.Body, t.limit(r))
		if err != nil {
			return jsonrpc.Message{}, t.unreadable(ctx, r, err)
		}
		return t.message(body, r)
	case media == "text/event-stream":
		return t.follow(ctx, resp, r, cancel)
	}
	began := make([]byte, 512)
	n, _ := io.ReadAtLeast(resp.Body, began, 1) // the body may have no end
	return jsonrpc.Message{}, t.server.fail(core.CodeInternal, "answered %s%s, want JSON or an event stream: correct the url of the pack if that is no MCP endpoint", resp.Status, beginning(resp, began[:n]))
}

// limit is the maximum size of a message in the answer to a request.
func (t *remote) limit(r request) int {
	if r.method == wire.MethodListTools {
		return maxListBytes + slack
	}
	return t.server.opts.ResultBytes + slack
}

// post sends a message. r is the request that it is, else zero.
func (t *remote) post(ctx context.Context, body []byte, r request) (*http.Response, error) {
	return t.do(ctx, http.MethodPost, body, r, map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream"})
}

// do sends a request of HTTP with headers beside those of r.
func (t *remote) do(ctx context.Context, method string, body []byte, r request, headers map[string]string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, t.server.opts.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	if err := t.setHeaders(req.Header, r); err != nil {
		return nil, err
	}
	return t.server.opts.HTTP.Do(req)
}

// setHeaders sets what servers compare with the message: see "Request Headers" of 2026-07-28.
// The error is that of the token.
func (t *remote) setHeaders(h http.Header, r request) error {
	token, err := t.server.opts.Token()
	switch {
	case err != nil:
		return t.server.fail(core.CodeNotAuthorized, "is not asked, since its token cannot be read (token_file): %s", err)
	case token != "":
		h.Set("Authorization", "Bearer "+token)
	}
	if session := cmp.Or(r.session, t.sessions.now()); session != "" && r.method != wire.MethodInitialize {
		h.Set(wire.HeaderSession, session)
	}
	e := t.server.era()
	if r.method == wire.MethodDiscover {
		e = era{modern: true, version: wire.Modern}
	}
	if e.version != "" {
		h.Set(wire.HeaderVersion, e.version)
	}
	if !e.modern || r.method == "" {
		return nil
	}
	h.Set(wire.HeaderMethod, r.method)
	if r.call != nil {
		h.Set(wire.HeaderName, r.call.tool.name)
		for _, m := range r.call.tool.headers {
			m.Set(h, r.call.arguments)
		}
	}
	return nil
}

// message reads the response to a request from the body of an answer.
func (t *remote) message(body []byte, r request) (jsonrpc.Message, error) {
	m, fault := jsonrpc.Read(body, strictjson.Limits{})
	if fault == nil && m.Kind() == jsonrpc.Response && bytes.Equal(m.ID, r.id) {
		return m, nil
	}
	why := "it is not the response to the request"
	if fault != nil {
		why = fault.Message
	}
	t.server.trouble("garbage", "an answer of the MCP server cannot be read", "why", why)
	return jsonrpc.Message{}, t.server.fail(core.CodeInternal, "sent an answer that cannot be read: %s", cut(why))
}

func (t *remote) send(ctx context.Context, m []byte) error { return t.sendIn(ctx, "", m) }

// sendIn is send in a session, "" for the present one.
func (t *remote) sendIn(ctx context.Context, session string, m []byte) error {
	resp, err := t.post(ctx, m, request{session: session})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, slack)
	if resp.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("answered %s", resp.Status)
	}
	return nil
}

// refused reads an answer that is no success: the error of a modern server, or a status.
func (t *remote) refused(resp *http.Response, r request) (jsonrpc.Message, error) {
	body, _ := readBody(resp.Body, slack)
	m, fault := jsonrpc.Read(body, strictjson.Limits{})
	said := fault == nil && m.Err != nil
	switch status := resp.StatusCode; {
	case t.sessions.now() != "" && forgotten(status, body, m, r):
		return jsonrpc.Message{}, t.expired()
	case said && status != http.StatusUnauthorized:
		return m, nil
	case r.method == wire.MethodDiscover && status >= http.StatusBadRequest && status < http.StatusInternalServerError &&
		status != http.StatusUnauthorized && status != http.StatusForbidden: // a legacy server
		return jsonrpc.Message{Err: jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "%s", resp.Status)}, nil
	}
	return jsonrpc.Message{}, t.server.failStatus(resp, beginning(resp, body), r.method == wire.MethodInitialize)
}

// unreachable returns what a caller is told when a request did not reach the server.
func (t *remote) unreachable(ctx context.Context, err error) error {
	var fault *core.Fault
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &fault):
		return fault
	}
	return t.server.failUnreachable(err)
}

// unreadable returns what a caller is told when an answer broke off.
func (t *remote) unreadable(ctx context.Context, r request, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, wire.ErrTooLarge) && r.call == nil:
		return t.server.fail(core.CodeTooLarge, "answered %s with more than %d bytes", r.method, t.limit(r))
	case errors.Is(err, wire.ErrTooLarge):
		t.server.trouble("too_large", "a result of the MCP server is over the limit", "limit", t.server.opts.ResultBytes)
		return tooLarge(t.server.opts.ResultBytes)
	}
	why := ""
	if !errors.Is(err, io.EOF) {
		why = ": " + err.Error()
	}
	return t.server.fail(core.CodeUnreachable, "broke off its answer to %s%s: the server may still carry out what was asked", r.method, why).Because(err)
}

func tooLarge(limit int) *core.Fault {
	return core.NewFault(core.CodeTooLarge, "the result has more than %d bytes: ask for less, or raise result_bytes of the pack", limit)
}

func (t *remote) established() { t.sessions.take() }

func (t *remote) mayBeSilent() bool     { return false }
func (t *remote) lost() <-chan struct{} { return t.gone }

func (t *remote) reason() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.why
}

// lose ends the connection: Run returns, and the next one begins with the probe.
func (t *remote) lose(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.why == nil {
		t.why = why
		close(t.gone)
	}
}

// close ends the session of a legacy server.
func (t *remote) close() {
	if t.sessions.now() == "" || errors.Is(t.reason(), errExpired) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.server.ctx), time.Second)
	defer cancel()
	if resp, err := t.do(ctx, http.MethodDelete, nil, request{}, nil); err == nil {
		resp.Body.Close()
	}
}

// readBody reads a body of at most limit bytes.
func readBody(r io.Reader, limit int) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err == nil && len(b) > limit {
		return nil, wire.ErrTooLarge
	}
	return b, err
}

// sleep waits, and reports false if ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
