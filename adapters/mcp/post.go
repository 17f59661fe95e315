package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

const (
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"
	// sessionless is the first version of the protocol without sessions, in which
	// notifications are sent in response to a request.
	sessionless = "2026-07-28"

	methodInitialize = "initialize"
	methodListTools  = "tools/list"
	methodCallTool   = "tools/call"
	methodListen     = "subscriptions/listen"
	noteCancelled    = "notifications/cancelled"
)

// methods are the supported methods.
var methods = []string{methodInitialize, "ping", methodListTools, methodCallTool, "server/discover", methodListen}

// busy is the JSON-RPC code of a request that may succeed later.
const busy = -32000

// post handles one message.
func (s *Server) post(w http.ResponseWriter, r *http.Request) {
	body, status, bad := s.readBody(w, r)
	if bad != nil {
		s.refuse(w, status, nil, bad)
		return
	}
	m, bad := readMessage(body, s.opts.MaxBodyBytes)
	h, unknown := s.authenticate(r)
	switch {
	case unknown != nil:
		s.refuseToken(w, r, m, unknown)
	case bad != nil:
		s.refuse(w, http.StatusBadRequest, m.ID, bad)
	case m.ID == nil:
		if m.Method == noteCancelled {
			h.cancelled(r.Header.Get(sessionHeader), m.Params)
		}
		w.WriteHeader(http.StatusAccepted)
	case !slices.Contains(methods, m.Method):
		status := http.StatusOK
		if r.Header.Get(versionHeader) >= sessionless {
			status = http.StatusNotFound
		}
		s.refuse(w, status, m.ID, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("method not found: %.100s; the methods are %s", m.Method, strings.Join(methods, ", "))})
	default:
		s.pass(w, r, &request{holder: h, sdk: s.sdk, client: r.Context(), session: r.Header.Get(sessionHeader), id: m.ID}, m)
	}
}

// pass passes a request to the SDK and the answer to the client.
func (s *Server) pass(w http.ResponseWriter, r *http.Request, req *request, m message) {
	token, bad := m.progressToken()
	if bad != nil {
		s.refuse(w, http.StatusBadRequest, m.ID, bad)
		return
	}
	ctx := r.Context()
	if m.Method == methodListen {
		var end func()
		var full *core.Fault
		if ctx, end, full = req.begin(ctx, &call{session: req.session, id: req.id, stream: true}); full != nil {
			s.refuse(w, http.StatusTooManyRequests, m.ID, &jsonrpc.Error{Code: busy, Message: full.Error()})
			return
		}
		req.sdk = s.newSDK()
		changes := req.watch() // before the client learns that it is subscribed
		var watch sync.WaitGroup
		watch.Go(func() { follow(ctx, changes, 0, func(bool) error { return announce(req.sdk) }) })
		defer func() {
			end()
			changes.Close(nil)
			watch.Wait()
		}()
	}
	mark := rand.Text()
	inner := r.Clone(context.WithValue(ctx, requestKey{}, req))
	// The SDK is always asked for JSON or a stream, whatever the Accept header says.
	inner.Header.Set("Accept", "application/json, text/event-stream")
	inner.Header.Set("Content-Type", "application/json")
	inner.Header.Del("Last-Event-Id") // no events are kept for replay
	b := m.as(mark)
	inner.Body, inner.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
	if m.Method == methodInitialize {
		w.Header().Set(sessionHeader, rand.Text())
	}
	a := newReply(w, r, mark, m.ID, s.opts)
	defer a.drop()
	req.running = func(tool string) { a.startProgress(token, tool) }
	s.handler.ServeHTTP(a, inner)
	a.finish()
}

// announce makes the SDK notify its subscribers that the tools have changed. The SDK does not
// know the tools, so any change has that effect.
func announce(server *sdk.Server) error {
	server.AddTool(&sdk.Tool{Name: "tool", InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
	return nil
}

// cancelled handles notifications/cancelled of a client.
func (h *holder) cancelled(session string, params strictjson.Value) {
	var in struct {
		ID     json.RawMessage `json:"requestId"`
		Reason string          `json:"reason"`
	}
	if err := params.Decode(&in); err != nil {
		return // a notification has no answer
	}
	if in.Reason != "" {
		in.Reason = ": " + in.Reason
	}
	h.cancel(session, in.ID, in.Reason)
}

// readBody reads a message, or returns the status of the refusal.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, int, *jsonrpc.Error) {
	if header := r.Header.Get("Content-Type"); header != "" {
		// This also refuses forms of web pages.
		if media, _, err := mime.ParseMediaType(header); err != nil || media != "application/json" {
			return nil, http.StatusUnsupportedMediaType, invalid("unsupported Content-Type %.100q: send JSON with Content-Type: application/json", header)
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(s.opts.MaxBodyBytes)))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, http.StatusRequestEntityTooLarge, invalid("the message has more than %d bytes: send less, or say where it is (a path, a link)", over.Limit)
	case err != nil:
		return nil, http.StatusBadRequest, invalid("the body could not be read: send it again")
	}
	return body, 0, nil
}

// refuseToken answers a caller that is not authorized. A message with an invalid token gets
// 400: official clients take 401, and some 403, as a request for OAuth, which this server
// does not offer, and then never show the error.
func (s *Server) refuseToken(w http.ResponseWriter, r *http.Request, m message, why *core.Fault) {
	switch e := invalid("%s", why.Message); {
	case why.Code != core.CodeUnauthenticated:
		e.Code = busy
		s.refuse(w, http.StatusServiceUnavailable, m.ID, e)
	case hasToken(r) && (m.Method != "" || r.Method == http.MethodGet):
		s.refuse(w, http.StatusBadRequest, m.ID, e)
	default:
		w.Header().Set("WWW-Authenticate", "Bearer")
		s.refuse(w, http.StatusUnauthorized, m.ID, e)
	}
}

// refuse answers a message with a protocol error.
func (s *Server) refuse(w http.ResponseWriter, status int, id json.RawMessage, e *jsonrpc.Error) {
	s.hub.Count(fmt.Sprintf("%s.refused.%d", Name, status))
	setHeaders(w.Header(), "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(failure(id, e)) // the client may have gone
}

func setHeaders(h http.Header, media string) {
	h.Set("Content-Type", media)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
}
