package mcp

import (
	"bytes"
	"net/http"

	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// codeBusy is the code of an error for a request that may succeed later.
const codeBusy = -32000

// statusOf returns the HTTP status of an error. Before 2026-07-28 most errors have the status 200.
func statusOf(e *jsonrpc.Error, modern bool) int {
	switch {
	case e.Code == codeBusy:
		return http.StatusTooManyRequests
	case e.Code == jsonrpc.CodeInvalidRequest:
		return http.StatusBadRequest
	case !modern:
		return http.StatusOK
	case e.Code == jsonrpc.CodeMethodNotFound:
		return http.StatusNotFound
	case e.Code == jsonrpc.CodeInternalError:
		return http.StatusInternalServerError
	}
	return http.StatusBadRequest
}

// readMessage reads one message from the body of a request, strictly. It returns an error for
// the client together with the part of the message that was read.
func readMessage(body []byte, maxBytes int) (jsonrpc.Message, *jsonrpc.Error) {
	m, bad := jsonrpc.Read(body, strictjson.Limits{Bytes: maxBytes})
	switch {
	case bad != nil && bad.Code == jsonrpc.CodeParseError:
		return m, bad
	case m.Whole.Exists():
		for key := range m.Whole.Members() {
			for _, want := range []string{"jsonrpc", "id", "method", "params", "result", "error"} {
				if string(key) != want && bytes.EqualFold(key, []byte(want)) {
					return m, jsonrpc.Errorf(jsonrpc.CodeParseError, "unknown key %.20q: write %s", key, want)
				}
			}
		}
	}
	switch {
	case bad != nil:
	case string(m.ID) == "null":
		m.ID, bad = nil, invalid("id: want a string or a number, got null")
	case m.Params.Kind() == strictjson.Array:
		bad = invalid("params: want an object, got %.20s", m.Params.Raw())
	}
	return m, bad
}

// notification is a notification to the client; nil params are none.
func notification(method string, params any) []byte {
	if params == nil {
		return jsonrpc.AppendNotification(nil, method, nil)
	}
	return jsonrpc.AppendNotification(nil, method, strictjson.Encode(params))
}

func invalid(format string, args ...any) *jsonrpc.Error {
	return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, format, args...)
}

func badParams(format string, args ...any) *jsonrpc.Error {
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, format, args...)
}
