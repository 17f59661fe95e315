package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/edge"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// operation is an operation of the protocol in both bindings.
type operation struct {
	method string // of the JSON-RPC binding
	verb   string // of the HTTP+JSON binding
	path   string // likewise; a %s is the id of the task
	stream bool
	// waits says that the answer may take as long as the task.
	waits bool
}

// The operations that the hub uses. SubscribeToTask is POST in the prose of the specification
// (section 11.3.2) and GET in its proto; every server seen takes both.
var (
	opSend      = operation{method: wire.MethodSend, verb: http.MethodPost, path: "/message:send", waits: true}
	opStream    = operation{method: wire.MethodStream, verb: http.MethodPost, path: "/message:stream", stream: true, waits: true}
	opGet       = operation{method: wire.MethodGetTask, verb: http.MethodGet, path: "/tasks/%s"}
	opCancel    = operation{method: wire.MethodCancelTask, verb: http.MethodPost, path: "/tasks/%s:cancel"}
	opSubscribe = operation{method: wire.MethodSubscribe, verb: http.MethodPost, path: "/tasks/%s:subscribe", stream: true, waits: true}
)

// call is one use of an operation.
type call struct {
	op operation
	// message is what it sends; nil for what is asked of a task.
	message *wire.SendRequest
	task    wire.TaskRequest
	// trace is what its headers carry on.
	trace core.Trace
}

// params returns what a call sends to a tenant.
func (c call) params(tenant string) any {
	if c.message == nil {
		task := c.task
		task.Tenant = tenant
		return task
	}
	message := *c.message
	message.Tenant = tenant
	return message
}

// response is the answer to a call whose status is 2xx: a stream, or the result.
type response struct {
	end    endpoint
	body   io.ReadCloser // of a stream
	result strictjson.Value
}

// requestID is the id of every JSON-RPC request: each is alone in its HTTP request.
var requestID = jsonrpc.NumberID(1)

// do makes a call at the first interface that can be reached. Errors are a *wire.Error for
// what the remote refused, and a Fault where it was not reached or did not answer as it should.
func (a *Agent) do(ctx context.Context, r *remote, c call) (resp response, err error) {
	for i, end := range r.ends {
		resp, err = a.doAt(ctx, r, end, c)
		if i+1 < len(r.ends) && isDial(err) && ctx.Err() == nil {
			continue // nothing was sent
		}
		break
	}
	return resp, err
}

// isDial reports whether an error is that nothing was sent, as there was no connection.
func isDial(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) && dial.Op == "dial"
}

// doAt sends a request and reads the answer, but for the events of a stream.
func (a *Agent) doAt(ctx context.Context, r *remote, end endpoint, c call) (response, error) {
	if !c.op.waits {
		within, cancel := context.WithTimeout(ctx, a.opts.Timeout)
		defer cancel()
		ctx = within
	}
	req, body, err := a.request(ctx, r, end, c)
	if err != nil {
		return response{}, err
	}
	what := "the remote agent at " + withoutQuery(end.url)
	frames, at := frame.TurnOf(ctx), time.Now()
	resp, err := a.http.Do(req)
	if !isDial(err) {
		frames.Sent(ctx, at, body)
	}
	if err != nil {
		return response{}, a.unreached(ctx, what, err)
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if c.op.stream && resp.StatusCode == http.StatusOK && media == wire.MediaEvents {
		a.answered()
		return response{end: end, body: resp.Body}, nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxBodyBytes+1))
	if err != nil {
		return response{}, a.unreached(ctx, what, err)
	}
	if len(text) > maxBodyBytes {
		return response{}, core.NewFault(core.CodeTooLarge, "%s answered with more than %d bytes", what, maxBodyBytes)
	}
	frames.Received(text)
	if text, err = edge.Text(text); err != nil {
		return response{}, core.NewFault(core.CodeUnsupported, "the answer of %s cannot be read: %s", what, err)
	}
	switch resp.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		a.failed()
	default:
		a.answered()
	}
	result, err := resultOf(end, resp.StatusCode, text)
	return response{end: end, result: result}, a.explained(r, what, resp, err)
}

// explained returns the error of a request that was answered, nil for none.
func (a *Agent) explained(r *remote, what string, resp *http.Response, err error) error {
	var own *wire.Error
	switch {
	case err == nil:
		return nil
	case resp.StatusCode == http.StatusTooManyRequests:
		return rateLimited(what, resp.Header, reason(err))
	case !errors.As(err, &own):
		return core.NewFault(core.CodeInternal, "%s answered what A2A %s does not have (status %d, %s): %s",
			what, wire.Version, resp.StatusCode, short(resp.Header.Get("Content-Type")), reason(err))
	case own.Status == http.StatusUnauthorized, own.Status == http.StatusForbidden:
		return a.denied(r, "a request to "+what, own.Status, reason(err)).Because(err)
	}
	return err
}

// rateLimited returns the Fault of a request that was refused with 429, with when to come again (RFC 9110,
// section 10.2.3) if the answer says it in seconds.
func rateLimited(what string, h http.Header, said string) *core.Fault {
	f := core.NewFault(core.CodeRateLimited, "%s has a limit on requests: %s", what, said)
	if seconds, err := strconv.Atoi(h.Get("Retry-After")); err == nil {
		f.RetryAfter = core.Seconds(min(max(0, time.Duration(seconds)*time.Second), longestPause))
	}
	return f
}

// longestPause bounds how long a remote agent that limits requests is passed over.
const longestPause = 24 * time.Hour

// request returns the HTTP request of a call and its body.
func (a *Agent) request(ctx context.Context, r *remote, end endpoint, c call) (req *http.Request, body []byte, err error) {
	verb, at := http.MethodPost, end.url
	if end.rest {
		verb, at = c.op.verb, c.path(end)
	}
	if end.rest && verb == http.MethodGet {
		at += fmt.Sprintf("?historyLength=%d", *c.task.HistoryLength)
	} else {
		raw, err := strictjson.Marshal(c.params(end.tenant))
		if err != nil {
			return nil, nil, err
		}
		if body = raw; !end.rest {
			body = jsonrpc.AppendRequest(nil, requestID, c.op.method, raw)
		}
	}
	req, err = http.NewRequestWithContext(ctx, verb, at, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	accept, media := wire.MediaJSON, wire.MediaJSON
	if end.rest {
		accept, media = wire.MediaA2A+", "+wire.MediaJSON, wire.MediaA2A
	}
	if c.op.stream {
		accept = wire.MediaEvents
	}
	req.Header.Set("Accept", accept)
	if body != nil {
		req.Header.Set("Content-Type", media)
	}
	req.Header.Set(wire.VersionHeader, wire.Version)
	if r.cursors {
		req.Header.Set(wire.ExtensionsHeader, wire.CursorExtension)
	}
	c.trace.Each(req.Header.Set)
	if end.own {
		r.proof.add(req, a.opts.Token())
	}
	return req, body, nil
}

// path returns the address of a call in the HTTP+JSON binding.
func (c call) path(end endpoint) string {
	path := c.op.path
	if c.message == nil {
		path = fmt.Sprintf(path, url.PathEscape(c.task.ID))
	}
	if end.tenant != "" {
		path = "/" + url.PathEscape(end.tenant) + path
	}
	return end.url + path
}

// resultOf returns the result of an answer, or the error that it is.
func resultOf(end endpoint, status int, text []byte) (strictjson.Value, error) {
	ok := status >= 200 && status < 300
	if end.rest {
		if !ok {
			return strictjson.Value{}, wire.ReadErrorBody(status, text)
		}
		return wire.Parse(text)
	}
	m, wrong := jsonrpc.Read(text, wire.Limits)
	switch {
	case wrong == nil && m.Kind() == jsonrpc.Response && m.Err != nil:
		return strictjson.Value{}, rpcError(status, m.Err)
	case !ok:
		return strictjson.Value{}, wire.ReadErrorBody(status, text)
	case wrong != nil:
		return strictjson.Value{}, wrong
	case m.Kind() != jsonrpc.Response || string(m.ID) != string(requestID):
		return strictjson.Value{}, fmt.Errorf("want a response with the id %s, got the id %.40q", requestID, m.ID)
	}
	return m.Result, nil
}

// rpcError returns an error of the JSON-RPC binding.
func rpcError(status int, e *jsonrpc.Error) *wire.Error {
	details, _ := wire.Parse(e.Data)
	return wire.ReadError(status, e.Code, e.Message, details)
}

// refusedAs reports whether the remote refused a call for the reason.
func refusedAs(err error, reasons ...string) bool {
	var e *wire.Error
	return errors.As(err, &e) && slices.Contains(reasons, e.Reason)
}

// unreached notes that a request was not answered, and returns its Fault.
func (a *Agent) unreached(ctx context.Context, what string, err error) error {
	if ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		a.failed()
	}
	return unanswered(ctx, what, err)
}

// unanswered returns the Fault of a request that was not answered; once ctx has been cancelled
// its cause.
func unanswered(ctx context.Context, what string, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return context.Cause(ctx)
	}
	var at *url.Error // its text repeats the URL
	if errors.As(err, &at) {
		err = at.Err
	}
	return core.NewFault(core.CodeUnreachable, "%s does not answer: %s", what, short(err.Error())).Because(err)
}

// reason returns the message of an error without the code of a Fault.
func reason(err error) string {
	var f *core.Fault
	var e *wire.Error
	switch {
	case errors.As(err, &f):
		return f.Message
	case errors.As(err, &e):
		return short(e.Message)
	}
	return short(err.Error())
}

// getTask returns the task as it is now, with the last message, which may be the answer.
func (a *Agent) getTask(ctx context.Context, r *remote, id string) (wire.Task, error) {
	last := 1
	return a.askTask(ctx, r, opGet, wire.TaskRequest{ID: id, HistoryLength: &last})
}

// cancelTask cancels a task and returns it as it is then.
func (a *Agent) cancelTask(ctx context.Context, r *remote, id string) (wire.Task, error) {
	return a.askTask(ctx, r, opCancel, wire.TaskRequest{ID: id})
}

// askTask makes a call whose answer is the task.
func (a *Agent) askTask(ctx context.Context, r *remote, op operation, of wire.TaskRequest) (t wire.Task, err error) {
	resp, err := a.do(ctx, r, call{op: op, task: of})
	if err != nil {
		return t, err
	}
	if t, err = wire.ReadTask(resp.result); err != nil {
		return t, core.NewFault(core.CodeInternal, "the remote agent answered with a task that is none: %s%s", reason(err), legacy(resp.result))
	}
	return t, nil
}

// legacy returns a hint if an answer is one of A2A 0.3, whose objects name their kind.
func legacy(v strictjson.Value) string {
	switch kind, _ := v.Get("kind").Text(); kind {
	case "task", "message", "status-update", "artifact-update":
		return " (it answers in A2A 0.3; the hub speaks " + wire.Version + ")"
	}
	return ""
}
