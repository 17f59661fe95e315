package editor

import (
	"context"
	"encoding/json"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/suggest"
)

// receive handles one message of the editor. It runs in the reader loop.
func (c *connection) receive(ctx context.Context, frame []byte) error {
	if len(frame) > c.opts.MaxMessageBytes {
		return c.rejected(ctx, &link.Reject{Cause: link.TooLarge, Size: len(frame), Limit: c.opts.MaxMessageBytes, Head: string(frame[:min(len(frame), 4<<10)]), Tail: string(frame[max(0, len(frame)-(4<<10)):])})
	}
	m, fault := jsonrpc.Read(frame, strictjson.Limits{Bytes: c.opts.MaxMessageBytes})
	if fault != nil {
		return c.unread(ctx, m.ID, m.IsAnswer(), fault)
	}
	switch m.Kind() {
	case jsonrpc.Response:
		c.answered(m)
		return nil
	case jsonrpc.Notification:
		c.notified(m)
		return nil
	}
	return c.requested(ctx, m)
}

// rejected answers a message that was not read.
func (c *connection) rejected(ctx context.Context, r *link.Reject) error {
	e := jsonrpc.Errorf(jsonrpc.CodeParseError, "%s", r.Text)
	if r.Cause == link.TooLarge {
		e = jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "the message is over the limit of %d bytes: send less, such as a link to a file (the operator can raise editor.message_bytes)", c.opts.MaxMessageBytes)
	}
	p := jsonrpc.Peek(r.Head, r.Tail)
	return c.unread(ctx, p.ID, p.Response, e)
}

// unread answers a message that could not be read. An answer of the editor gets none: its id is one
// that the hub gave, and what waits for it gets an error.
func (c *connection) unread(ctx context.Context, id json.RawMessage, isAnswer bool, e *jsonrpc.Error) error {
	c.count("refused.message")
	if isAnswer {
		c.answered(jsonrpc.Message{ID: id, Err: e})
		return nil
	}
	return c.send(ctx, jsonrpc.AppendError(nil, id, e))
}

// notified handles a notification. Unknown ones are ignored, as the protocol says.
func (c *connection) notified(m jsonrpc.Message) {
	switch m.Method {
	case wire.MethodSessionCancel:
		p, fault := wire.Read[wire.SessionRequest](m.Params)
		session := core.ThreadID(p.SessionID)
		switch {
		case fault != nil:
			c.count("refused.notification")
		case c.conversation(session) != nil:
			c.cancelSession(session)
		default: // a prompt that opens it may wait for the pump
			_ = c.later(func(context.Context) error { c.cancelSession(session); return nil })
		}
	case wire.MethodCancelRequest:
		c.cancelRequest(m.Params.Get("requestId").Raw())
	default:
		c.count("refused.notification")
		c.log.Debug("a notification is ignored", "method", m.Method)
	}
}

// methods are the requests of an editor that are handled.
var methods = map[string]func(*connection, context.Context, json.RawMessage, strictjson.Value) *jsonrpc.Error{
	wire.MethodSessionNew:             (*connection).newSession,
	wire.MethodSessionLoad:            (*connection).loadSession,
	wire.MethodSessionResume:          (*connection).resumeSession,
	wire.MethodSessionList:            (*connection).listSessions,
	wire.MethodSessionClose:           (*connection).closeSession,
	wire.MethodSessionPrompt:          (*connection).prompt,
	wire.MethodAuthenticate:           (*connection).authenticate,
	wire.MethodSessionFork:            (*connection).forkSession,
	wire.MethodSessionDelete:          (*connection).deleteSession,
	wire.MethodSteering:               (*connection).steer,
	wire.MethodSessionSetMode:         (*connection).setMode,
	wire.MethodSessionSetConfigOption: (*connection).setConfigOption,
}

// requested handles a request. Its handler returns an error, or answers the request itself,
// now or later.
func (c *connection) requested(ctx context.Context, m jsonrpc.Message) error {
	c.mu.Lock()
	_, twice := c.open[string(m.ID)]
	if !twice {
		c.open[string(m.ID)] = struct{}{}
	}
	c.mu.Unlock()
	if twice { // an answer with its id would answer the other one
		c.count("refused.id")
		return c.send(ctx, jsonrpc.AppendError(nil, nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest,
			"id %s: an earlier request with it has no answer yet; send this one with an id of its own", m.ID)))
	}
	var fault *jsonrpc.Error
	handle := methods[m.Method]
	switch {
	case m.Method == wire.MethodInitialize:
		fault = c.initialize(ctx, m.ID, m.Params)
	case handle == nil:
		fault = unknownMethod(m.Method)
	case !c.greeted:
		fault = jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s came before initialize: send initialize first", m.Method)
	default:
		fault = handle(c, ctx, m.ID, m.Params)
	}
	if fault == nil {
		return nil
	}
	c.count("refused.request")
	return c.refuse(ctx, m.ID, fault)
}

func unknownMethod(name string) *jsonrpc.Error {
	known := []string{wire.MethodInitialize}
	for method := range methods {
		known = append(known, method)
	}
	if near := suggest.Nearest(name, known); near != "" {
		return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "the hub has no method %.80q: did you mean %s?", name, near)
	}
	return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "the hub has no method %.80q", name)
}

// authenticate refuses: initialize names no method, since the connection has authenticated.
func (c *connection) authenticate(context.Context, json.RawMessage, strictjson.Value) *jsonrpc.Error {
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "methodId: the hub has no methods; it authenticates the connection (dragoman editor --token)")
}

// deleteSession refuses: the hub deletes no conversation by itself. It is not announced.
func (c *connection) deleteSession(context.Context, json.RawMessage, strictjson.Value) *jsonrpc.Error {
	return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "session/delete: the hub deletes no conversation by itself: each ends by retention (journal.age); session/close ends a session here")
}

// errorOf returns a fault of the hub as the error of a request.
func errorOf(err error) *jsonrpc.Error {
	f := core.AsFault(err)
	code := jsonrpc.CodeInternalError
	switch f.Code {
	case core.CodeInvalid, core.CodeTooLarge:
		code = jsonrpc.CodeInvalidParams
	case core.CodeUnknownAgent, core.CodeUnknownTask, core.CodeUnknownDomain:
		code = wire.CodeResourceNotFound
	case core.CodeCancelled:
		code = wire.CodeRequestCancelled
	}
	e := jsonrpc.Errorf(code, "%s", f.Message)
	e.Data = strictjson.Encode(struct {
		Code      core.Code `json:"code"`
		Retryable bool      `json:"retryable"`
		PeerCode  string    `json:"peerCode,omitempty"`
	}{f.Code, f.Retryable, f.PeerCode})
	return e
}
