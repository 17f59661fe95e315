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
	// sessionless is the first version of the protocol without sessions, where news
	// come in answer to a request.
	sessionless = "2026-07-28"

	methodInitialize = "initialize"
	methodListTools  = "tools/list"
	methodCallTool   = "tools/call"
	methodListen     = "subscriptions/listen"
	noteCancelled    = "notifications/cancelled"
)

// methods are what a client may ask for.
var methods = []string{methodInitialize, "ping", methodListTools, methodCallTool, "server/discover", methodListen}

// busy is the JSON-RPC code for what may work later.
const busy = -32000

// post serves one message.
func (s *Server) post(w http.ResponseWriter, r *http.Request) {
	body, status, bad := s.readBody(w, r)
	if bad != nil {
		s.refuse(w, status, nil, bad)
		return
	}
	m, bad := readMessage(body, s.opts.MaxBodyBytes)
	h, unknown := s.who(r)
	switch {
	case unknown != nil:
		s.turnAway(w, r, m, unknown)
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
		s.refuse(w, status, m.ID, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("method not found: %.100s; here are %s", m.Method, strings.Join(methods, ", "))})
	default:
		s.pass(w, r, &request{holder: h, sdk: s.sdk, client: r.Context(), session: r.Header.Get(sessionHeader), id: m.ID}, m)
	}
}

// pass hands a request to the SDK and its answer to the client.
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
		news := req.watch() // before the client is told that it listens
		var watch sync.WaitGroup
		watch.Go(func() { follow(ctx, news, 0, func(bool) error { return announce(req.sdk) }) })
		defer func() {
			end()
			news.Close(nil)
			watch.Wait()
		}()
	}
	mark := rand.Text()
	inner := r.Clone(context.WithValue(ctx, requestKey{}, req))
	// What is asked for is JSON or a stream, whatever the client thinks that it has to say.
	inner.Header.Set("Accept", "application/json, text/event-stream")
	inner.Header.Set("Content-Type", "application/json")
	inner.Header.Del("Last-Event-Id") // nothing is kept that could be sent again
	b := m.as(mark)
	inner.Body, inner.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
	if m.Method == methodInitialize {
		w.Header().Set(sessionHeader, rand.Text())
	}
	a := newReply(w, r, mark, m.ID, s.opts)
	defer a.drop()
	req.running = func(tool string) { a.tellProgress(token, tool) }
	s.handler.ServeHTTP(a, inner)
	a.finish()
}

// announce makes the SDK tell whoever listens that the tools have changed. Which
// there are it does not know: any change will do.
func announce(server *sdk.Server) error {
	server.AddTool(&sdk.Tool{Name: "tool", InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
	return nil
}

// cancelled does what a client's notifications/cancelled asks for.
func (h *holder) cancelled(session string, params strictjson.Value) {
	var in struct {
		ID     json.RawMessage `json:"requestId"`
		Reason string          `json:"reason"`
	}
	if err := params.Decode(&in); err != nil {
		return // there is nobody to tell
	}
	if in.Reason != "" {
		in.Reason = ": " + in.Reason
	}
	h.cancel(session, in.ID, in.Reason)
}

// readBody reads a message, or says with which status it is refused.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, int, *jsonrpc.Error) {
	if header := r.Header.Get("Content-Type"); header != "" {
		// This is also what keeps forms of web pages out.
		if media, _, err := mime.ParseMediaType(header); err != nil || media != "application/json" {
			return nil, http.StatusUnsupportedMediaType, invalid("the body is said to be %.100q: send JSON with Content-Type: application/json", header)
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(s.opts.MaxBodyBytes)))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, http.StatusRequestEntityTooLarge, invalid("the message has more than %d bytes: send less, or say where it is (a path, a link)", over.Limit)
	case err != nil:
		return nil, http.StatusBadRequest, invalid("the body could not be read to its end: send it again")
	}
	return body, 0, nil
}

// turnAway answers somebody who may not come in. A message with a token that is not
// good gets 400: official clients take 401, and some 403, for an invitation to OAuth,
// which this server does not offer, and then never show what the error says.
func (s *Server) turnAway(w http.ResponseWriter, r *http.Request, m message, why *core.Fault) {
	switch e := invalid("%s", why.Message); {
	case why.Code != core.CodeUnauthenticated:
		e.Code = busy
		s.refuse(w, http.StatusServiceUnavailable, m.ID, e)
	case showsToken(r) && (m.Method != "" || r.Method == http.MethodGet):
		s.refuse(w, http.StatusBadRequest, m.ID, e)
	default:
		w.Header().Set("WWW-Authenticate", "Bearer")
		s.refuse(w, http.StatusUnauthorized, m.ID, e)
	}
}

// refuse answers a message with an error of the protocol.
func (s *Server) refuse(w http.ResponseWriter, status int, id json.RawMessage, e *jsonrpc.Error) {
	s.hub.Count(fmt.Sprintf("%s.refused.%d", Name, status))
	setHeaders(w.Header(), "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(failure(id, e)) // a client that has gone has no use for it
}

func setHeaders(h http.Header, media string) {
	h.Set("Content-Type", media)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
}
