package a2a

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/suggest"
)

// operations are the methods of both bindings. An operation returns its result, or nil if it
// has answered with a stream.
var operations = map[string]func(*call, strictjson.Value) (json.RawMessage, error){
	wire.MethodSend:         (*call).send,
	wire.MethodStream:       (*call).sendStreaming,
	wire.MethodGetTask:      (*call).getTask,
	wire.MethodListTasks:    (*call).listTasks,
	wire.MethodCancelTask:   (*call).cancelTask,
	wire.MethodSubscribe:    (*call).subscribe,
	wire.MethodCreatePush:   (*call).createPush,
	wire.MethodGetPush:      (*call).getPush,
	wire.MethodListPush:     (*call).listPush,
	wire.MethodDeletePush:   (*call).deletePush,
	wire.MethodExtendedCard: (*call).extendedCard,
}

// serveRPC answers a request of the JSON-RPC binding (section 9).
func (s *Server) serveRPC(c *call) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	m, bad := jsonrpc.Read(body, strictjson.Limits{Bytes: s.opts.MaxBodyBytes, Depth: wire.Limits.Depth})
	c.id = m.ID
	if bad != nil {
		if bad.Code == jsonrpc.CodeParseError {
			return wire.ParseError(bad.Message)
		}
		return wire.InvalidRequest(bad.Message)
	}
	if m.Kind() != jsonrpc.Request {
		return wire.InvalidRequest("send a request: with a method and an id")
	}
	if err := c.checkVersion(); err != nil {
		return err
	}
	operate := operations[m.Method]
	if operate == nil {
		return wire.MethodNotFound(unknownMethod(m.Method))
	}
	params := m.Params
	if !params.Exists() {
		params = noParams
	}
	return c.serve(operate, params)
}

// noParams are the params of a request without any.
var noParams = strictjson.ParseValid([]byte("{}"))

// oldMethods are methods of A2A 0.3 by their names in 1.0.
var oldMethods = map[string]string{
	"message/send": "SendMessage", "message/stream": "SendStreamingMessage",
	"tasks/get": "GetTask", "tasks/cancel": "CancelTask", "tasks/resubscribe": "SubscribeToTask",
}

func unknownMethod(method string) string {
	text := "unknown method " + strconv.Quote(shorten(method))
	if now := oldMethods[method]; now != "" {
		return text + ": in A2A 1.0 it is " + now
	}
	names := make([]string, 0, len(operations))
	for name := range operations {
		names = append(names, name)
	}
	slices.Sort(names)
	if near := suggest.Nearest(method, names); near != "" {
		return text + "; did you mean " + near + "?"
	}
	return text
}

// serve performs an operation and answers with its result.
func (c *call) serve(operate func(*call, strictjson.Value) (json.RawMessage, error), params strictjson.Value) error {
	result, err := operate(c, params)
	if err != nil || result == nil {
		return err
	}
	media := wire.MediaA2A
	if c.rpc {
		media, result = wire.MediaJSON, jsonrpc.AppendResult(nil, c.id, result)
	}
	c.write(http.StatusOK, media, result)
	return nil
}

// serveREST answers a request of the HTTP+JSON binding (section 11).
func (s *Server) serveREST(c *call, to destination) error {
	if err := c.checkVersion(); err != nil {
		return err
	}
	params, err := c.params(to)
	if err != nil {
		return err
	}
	return c.serve(operations[to.operation], params)
}

// params returns the request of an operation from its path, its query and its body, in the
// form that the JSON-RPC binding has.
func (c *call) params(to destination) (strictjson.Value, error) {
	query := c.r.URL.Query()
	switch to.operation {
	case wire.MethodSend, wire.MethodStream:
		return c.readBody()
	case wire.MethodCreatePush:
		v, err := c.readBody()
		if err != nil || v.Kind() != strictjson.Object {
			return v, err
		}
		return wire.Parse(v.Set(strictjson.Field{Key: "taskId", Value: strictjson.AppendString(nil, to.task)}))
	case wire.MethodCancelTask, wire.MethodSubscribe:
		v := noParams
		if c.r.Method == http.MethodPost {
			body, err := c.body()
			if err != nil {
				return v, err
			}
			if len(body) > 0 {
				if v, err = wire.Parse(body); err != nil {
					return v, wire.ParseError(err.Error())
				}
			}
		}
		return wire.Parse(v.Set(strictjson.Field{Key: "id", Value: strictjson.AppendString(nil, to.task)}))
	case wire.MethodGetTask:
		return fromQuery(query, map[string]string{"id": to.task}, "historyLength")
	case wire.MethodListTasks:
		return fromQuery(query, nil, "contextId", "status", "pageSize", "pageToken", "historyLength", "statusTimestampAfter", "includeArtifacts")
	case wire.MethodListPush:
		return fromQuery(query, map[string]string{"taskId": to.task}, "pageSize", "pageToken")
	case wire.MethodGetPush, wire.MethodDeletePush:
		return fromQuery(query, map[string]string{"taskId": to.task, "id": to.config})
	}
	return noParams, nil
}

// fromQuery returns a request with members of the path and of the query. Of the query,
// numbers and booleans are taken as such where a member is one.
func fromQuery(query url.Values, path map[string]string, names ...string) (strictjson.Value, error) {
	members := map[string]any{}
	for name, value := range path {
		members[name] = value
	}
	for _, name := range names {
		value := query.Get(name)
		switch name {
		case "pageSize", "historyLength":
			if n, err := strconv.Atoi(value); err == nil {
				members[name] = n
				continue
			}
		case "includeArtifacts":
			if on, err := strconv.ParseBool(value); err == nil {
				members[name] = on
				continue
			}
		}
		if value != "" {
			members[name] = value // the request says what it wants instead
		}
	}
	text, err := wire.Marshal(members)
	if err != nil {
		return strictjson.Value{}, err
	}
	return wire.Parse(text)
}

// readBody reads the body as JSON.
func (c *call) readBody() (strictjson.Value, error) {
	body, err := c.body()
	if err != nil {
		return strictjson.Value{}, err
	}
	v, err := wire.Parse(body)
	if err != nil {
		return v, wire.ParseError(err.Error())
	}
	return v, nil
}

// body reads the whole body.
func (c *call) body() ([]byte, error) {
	if header := c.r.Header.Get("Content-Type"); header != "" {
		// This also refuses forms of web pages.
		if media, _, err := mime.ParseMediaType(header); err != nil || media != wire.MediaJSON && media != wire.MediaA2A {
			return nil, wire.NewError(wire.ReasonContentType, "unsupported Content-Type "+strconv.Quote(shorten(header))+": send JSON with Content-Type: "+wire.MediaJSON)
		}
	}
	o := c.server.opts
	rc := http.NewResponseController(c.w)
	_ = rc.SetReadDeadline(time.Now().Add(o.WriteTimeout)) // not every ResponseWriter supports it
	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, int64(o.MaxBodyBytes)))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, core.NewFault(core.CodeTooLarge, "the body has more than %d bytes: send less, files included, or a part with a url; the setting a2a.body_bytes sets the limit", over.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, core.NewFault(core.CodeTimeout, "the body took longer than %s: send it faster", o.WriteTimeout)
	case err != nil:
		return nil, core.NewFault(core.CodeInvalid, "the body could not be read to its end").Because(err)
	}
	_ = rc.SetReadDeadline(time.Time{}) // the answer may take longer than the server allows for a request
	return body, nil
}

// refuse answers with an error, or ends a stream with it. An error that is not for clients is
// logged.
func (c *call) refuse(err error) {
	e := wire.ErrorOf(err)
	if e.Code == jsonrpc.CodeInternalError {
		c.server.opts.Log.Error("a request failed", "path", c.r.URL.Path, "error", err)
	}
	c.server.hub.Count("a2a.refused." + e.Reason)
	if c.answered {
		return // the end of the stream without a terminal state says it
	}
	if e.Status == http.StatusUnauthorized {
		c.w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if seconds := core.AsFault(err).RetrySeconds(); seconds > 0 {
		c.w.Header().Set("Retry-After", strconv.Itoa(seconds))
	}
	switch {
	case !c.rpc:
		c.write(e.Status, wire.MediaJSON, e.Body())
	case e.Status == http.StatusUnauthorized:
		c.write(e.Status, wire.MediaJSON, c.rpcError(e))
	default:
		c.write(http.StatusOK, wire.MediaJSON, c.rpcError(e))
	}
}

func (c *call) rpcError(e *wire.Error) []byte {
	return jsonrpc.AppendError(nil, c.id, &jsonrpc.Error{Code: e.Code, Message: e.Message, Data: e.Details()})
}

// write answers with a complete document.
func (c *call) write(status int, media string, document []byte) {
	c.answered = true
	setHeaders(c.w, media)
	c.w.WriteHeader(status)
	_, _ = c.outlet().Write(document) // the client may have gone
}

func setHeaders(w http.ResponseWriter, media string) {
	h := w.Header()
	h.Set("Content-Type", media)
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	h.Set("X-Content-Type-Options", "nosniff")
}
