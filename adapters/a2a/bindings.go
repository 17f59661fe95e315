package a2a

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

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
	operate, err := methodNamed(m.Method)
	if err != nil {
		return err
	}
	params := m.Params
	if !params.Exists() {
		params = noParams
	}
	return c.serve(operate, params)
}

// serve performs an operation and answers with its result.
func (c *call) serve(operate operation, params strictjson.Value) error {
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
	params, err := c.params(to.method, to.members)
	if err != nil {
		return err
	}
	return c.serve(to.method.run, params)
}

// body reads the whole body.
func (c *call) body() ([]byte, error) {
	if header := c.r.Header.Get("Content-Type"); header != "" {
		// This also refuses forms of web pages.
		if media, _, err := mime.ParseMediaType(header); err != nil || media != wire.MediaJSON && media != wire.MediaA2A {
			return nil, wire.NewError(wire.ReasonContentType, "unsupported Content-Type "+strconv.Quote(shorten(header))+": send JSON with Content-Type: "+wire.MediaJSON)
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, int64(c.server.opts.MaxBodyBytes)))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, tooLarge(c.server.opts.MaxBodyBytes)
	case err != nil:
		return nil, core.NewFault(core.CodeInvalid, "the body could not be read to its end").Because(err)
	}
	return body, nil
}

func tooLarge(most int) error {
	return core.NewFault(core.CodeTooLarge, "the body has more than %d bytes: send less, files included, or a part with a url; the setting a2a.body_bytes sets the limit", most)
}

// note counts an error and returns it in the words of the protocol. One that is not for clients is
// logged.
func (c *call) note(err error) *wire.Error {
	e := wire.ErrorOf(err)
	if e.Code == jsonrpc.CodeInternalError {
		c.server.opts.Log.Error("a request failed", "path", c.r.URL.Path, "error", err)
	}
	c.server.hub.Count("a2a.refused." + e.Reason)
	return e
}

// refuse answers with an error, or ends a stream with it.
func (c *call) refuse(err error) {
	e := c.note(err)
	if c.answered {
		return // the end of the stream without a terminal state says it
	}
	if e.Status == http.StatusUnauthorized {
		c.w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if seconds := core.AsFault(err).RetryAfter.Whole(); seconds > 0 {
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
	_, _ = c.w.Write(document) // the client may have gone
}

func setHeaders(w http.ResponseWriter, media string) {
	h := w.Header()
	h.Set("Content-Type", media)
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	h.Set("X-Content-Type-Options", "nosniff")
}
