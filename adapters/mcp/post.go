package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// post handles one message.
func (s *Server) post(w http.ResponseWriter, r *http.Request) {
	h, unknown := s.authenticate(r)
	if unknown != nil {
		s.refuseCaller(w, r, unknown)
		return
	}
	body, status, bad := s.readBody(w, r)
	if bad != nil {
		s.refuse(w, status, nil, bad)
		return
	}
	m, bad := readMessage(body, s.opts.MaxBodyBytes)
	if r.Body = io.NopCloser(bytes.NewReader(body)); bad == nil && s.passOn(w, r, h, m) {
		return
	}
	switch {
	case bad != nil:
		s.refuse(w, http.StatusBadRequest, m.ID, bad)
	case m.Method == "":
		h.answered(m)
		w.WriteHeader(http.StatusAccepted)
	case m.ID == nil:
		if m.Method == wire.NoteCancelled {
			h.cancelled(r.Header.Get(wire.HeaderSession), m.Params)
		}
		w.WriteHeader(http.StatusAccepted)
	default:
		s.answer(w, r, h, m)
	}
}

// answer answers a request.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, h *holder, m jsonrpc.Message) {
	run, unknown := methodOf(m.Method, r.Header.Get(wire.HeaderVersion) >= wire.Modern)
	q, bad := readRequest(r, h, m)
	if bad != nil && (unknown == nil || bad.Code == wire.CodeUnsupportedVersion) {
		s.refuse(w, http.StatusBadRequest, m.ID, bad)
		return
	}
	if unknown != nil {
		s.refuse(w, statusOf(unknown, r.Header.Get(wire.HeaderVersion) >= wire.Modern), m.ID, unknown)
		return
	}
	a := newReply(w, q)
	switch out, bad := run(s, q, a); {
	case bad == nil:
		a.finish(http.StatusOK, jsonrpc.AppendResult(nil, m.ID, strictjson.Encode(out)))
	case statusOf(bad, q.modern) == http.StatusOK:
		a.finish(http.StatusOK, jsonrpc.AppendError(nil, m.ID, bad))
	default:
		s.hub.Count(fmt.Sprintf("%s.refused.%d", Name, a.finish(statusOf(bad, q.modern), jsonrpc.AppendError(nil, m.ID, bad))))
	}
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

// refuseCaller answers a caller that is not authorized, without reading its message: with 401 where the
// credential is missing, unknown or has expired (2026-07-28, basic/authorization, "Error Handling").
func (s *Server) refuseCaller(w http.ResponseWriter, r *http.Request, why *core.Fault) {
	e, status := invalid("%s", why.Message), http.StatusUnauthorized
	switch why.Code {
	case core.CodeUnauthenticated:
		w.Header().Set("WWW-Authenticate", s.challenge(r))
	case core.CodeNotAuthorized:
		status = http.StatusForbidden
	default:
		e.Code, status = codeBusy, http.StatusServiceUnavailable
	}
	s.refuse(w, status, nil, e)
}

// refuse answers a message with a protocol error.
func (s *Server) refuse(w http.ResponseWriter, status int, id json.RawMessage, e *jsonrpc.Error) {
	s.hub.Count(fmt.Sprintf("%s.refused.%d", Name, status))
	setHeaders(w.Header(), "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(jsonrpc.AppendError(nil, id, e)) // the client may have gone
}

func setHeaders(h http.Header, media string) {
	h.Set("Content-Type", media)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
}
