package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// message is a JSON-RPC message from a client. The zero message is a response to
// a request that the server did not send.
type message struct {
	// ID is the id as it was sent; nil for a notification.
	ID     json.RawMessage
	Method string
	// Params is an object, or empty.
	Params strictjson.Value
}

// readMessage reads one message from the body of a request, strictly. It returns an error for
// the client together with the part of the message that was read.
func readMessage(body []byte, maxBytes int) (message, *jsonrpc.Error) {
	if b := bytes.TrimLeft(body, " \t\r\n"); len(b) == 0 {
		return message{}, invalid("the body is empty: send a JSON-RPC message")
	} else if b[0] == '[' {
		return message{}, invalid("the body is a batch: send one message in each request")
	}
	var in struct {
		Version strictjson.Value `json:"jsonrpc"`
		ID      strictjson.Value `json:"id"`
		Method  strictjson.Value `json:"method"`
		Params  strictjson.Value `json:"params"`
		Result  strictjson.Value `json:"result"`
		Error   strictjson.Value `json:"error"`
	}
	if err := strictjson.Decode(body, strictjson.Limits{Bytes: maxBytes}, &in); err != nil {
		return message{}, &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: err.Error()}
	}
	var m message
	if !in.Params.Absent() {
		m.Params = in.Params
	}
	if in.ID.Exists() {
		if k := in.ID.Kind(); k != strictjson.String && k != strictjson.Number {
			return m, invalid("id: want a string or a number, got %.20s", in.ID.Raw())
		}
		m.ID = in.ID.Clone()
	}
	m.Method, _ = in.Method.Text()
	switch {
	case string(in.Version.Raw()) != `"2.0"`:
		return m, invalid(`jsonrpc: want "2.0", got %.20s`, cmp.Or(string(in.Version.Raw()), "nothing"))
	case !in.Method.Exists() && (in.Result.Exists() || in.Error.Exists()):
		return message{}, nil
	case m.Method == "":
		return m, invalid("method: want a method name, got %.20s", cmp.Or(string(in.Method.Raw()), "nothing"))
	case m.Params.Exists() && m.Params.Kind() != strictjson.Object:
		return m, invalid("params: want an object, got %.20s", m.Params.Raw())
	}
	return m, nil
}

// progressToken returns the progress token of a tool call, as it was sent; nil if the client
// wants no progress.
func (m message) progressToken() (json.RawMessage, *jsonrpc.Error) {
	var in struct {
		Meta struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	if m.Method != methodCallTool {
		return nil, nil
	}
	if err := m.Params.Decode(&in); err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "params: " + err.Error()}
	}
	switch t := in.Meta.Token; {
	case t == nil, string(t) == "null":
		return nil, nil
	case t[0] == '"', t[0] == '-', t[0] >= '0' && t[0] <= '9':
		return t, nil
	default:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("_meta.progressToken: want a string or a number, got %.20s", t)}
	}
}

// as returns the message as JSON with another id, which must not need escaping.
func (m message) as(id string) []byte {
	method, _ := json.Marshal(m.Method) // a string always encodes
	b := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"%s","method":%s`, id, method)
	if m.Params.Exists() {
		b = append(append(b, `,"params":`...), m.Params.Raw()...)
	}
	return append(b, '}')
}

// failure is the response to a message that failed before it reached a tool.
func failure(id json.RawMessage, e *jsonrpc.Error) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	body, _ := json.Marshal(e) // plain fields always encode
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":%s}`, id, body)
}

func invalid(format string, args ...any) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf(format, args...)}
}
