package jsonrpc

import (
	"bytes"
	"cmp"
	"encoding/json"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Kind is what a message is.
type Kind uint8

// The kinds of messages.
const (
	_            Kind = iota
	Request           // it has a method and an id, and wants a response
	Notification      // it has a method and no id
	Response          // it has an id, and a result or an error
)

// MaxIDBytes is the maximum length of an id: whoever answers keeps it as long as he works.
const MaxIDBytes = 1024

// Message is a message of a peer. Its parts share the memory of the text that it was read from.
type Message struct {
	// ID is the id as it was sent: a number, a string or null. It is nil for a notification.
	ID json.RawMessage
	// Method is the method of a request or notification, "" for a response.
	Method string
	// Params is an object or an array; no value if there is none, or null.
	Params strictjson.Value
	// Result is the result of a response that succeeded: any value, such as null.
	Result strictjson.Value
	// Err is the error of a response that failed.
	Err *Error
	// Whole is the whole message, with the members that JSON-RPC does not know.
	Whole strictjson.Value
}

// Kind returns what the message is, by its members. It is valid once [Read] has accepted the
// message.
func (m *Message) Kind() Kind {
	switch {
	case m.Method == "":
		return Response
	case m.ID == nil:
		return Notification
	}
	return Request
}

// Read reads one message, which must not change as long as the Message is used. The error is
// for the peer and says what to change: a parse error for what is not strict JSON within
// limits, an invalid request for what is not a message. The Message then has what was read so
// far, such as the id that an answer needs.
func Read(text []byte, limits strictjson.Limits) (Message, *Error) {
	var m Message
	if b := bytes.TrimLeft(text, " \t\r\n"); len(b) == 0 {
		return m, invalid("the message is empty: send a JSON-RPC 2.0 object")
	} else if b[0] == '[' {
		return m, invalid("the message is a batch: send one message at a time")
	}
	whole, err := strictjson.Parse(text, limits)
	if err != nil {
		return m, &Error{Code: CodeParseError, Message: err.Error()}
	}
	if whole.Kind() != strictjson.Object {
		return m, invalid("the message is %.40s: send a JSON-RPC 2.0 object", whole.Raw())
	}
	m.Whole = whole
	return m, m.read()
}

// IsAnswer reports whether the message is meant as a response, also where [Read] has refused it: an
// error with its id would answer another request.
func (m *Message) IsAnswer() bool {
	return !m.Whole.Get("method").Exists() && (m.Whole.Get("result").Exists() || m.Whole.Get("error").Exists())
}

// read reads the members, the id first of all that may be wrong.
func (m *Message) read() *Error {
	var version, id, method, params, failure strictjson.Value
	for key, value := range m.Whole.Members() {
		switch string(key) {
		case "jsonrpc":
			version = value
		case "id":
			id = value
		case "method":
			method = value
		case "params":
			params = value
		case "result":
			m.Result = value
		case "error":
			failure = value
		}
	}
	if bad := m.readID(id); bad != nil {
		return bad
	}
	if v := version.Raw(); string(v) != `"2.0"` {
		return invalid(`jsonrpc: want "2.0", got %.40s`, cmp.Or(string(v), "nothing"))
	}
	if method.Exists() {
		return m.readCall(method, params, failure)
	}
	return m.readResponse(failure)
}

// readID reads the id, if there is one.
func (m *Message) readID(id strictjson.Value) *Error {
	if !id.Exists() {
		return nil
	}
	if k := id.Kind(); k != strictjson.String && k != strictjson.Number && k != strictjson.Null {
		return invalid("id: want a number or a string, got %.40s", id.Raw())
	}
	if n := len(id.Raw()); n > MaxIDBytes {
		return invalid("id: %d bytes long, the limit is %d", n, MaxIDBytes)
	}
	m.ID = id.Raw()
	return nil
}

// readResponse checks a response, and reads its error if it has one.
func (m *Message) readResponse(failure strictjson.Value) *Error {
	switch {
	case !m.Result.Exists() && failure.Absent():
		return invalid("a message has a method, a result or an error, this one has none")
	case m.Result.Exists() && !failure.Absent():
		return invalid("a response has a result or an error, this one has both")
	case m.ID == nil:
		return invalid("id: a response has the id of its request, this one has none")
	case !m.Result.Exists():
		return m.readFailure(failure)
	}
	return nil
}

// readCall reads the rest of a request or notification.
func (m *Message) readCall(method, params, failure strictjson.Value) *Error {
	name, _ := method.Text()
	switch {
	case name == "":
		return invalid("method: want a method name, got %.40s", method.Raw())
	case m.Result.Exists() || failure.Exists():
		return invalid("a message has a method, or a result or error: this one has both")
	case !params.Absent() && params.Kind() != strictjson.Object && params.Kind() != strictjson.Array:
		return invalid("params: want an object or an array, got %.40s", params.Raw())
	}
	if m.Method = name; !params.Absent() {
		m.Params = params
	}
	return nil
}

func (m *Message) readFailure(failure strictjson.Value) *Error {
	if failure.Kind() != strictjson.Object || failure.Get("code").Absent() {
		return invalid("error: want an object with a code and a message, got %.40s", failure.Raw())
	}
	var e Error
	if err := failure.Decode(&e); err != nil {
		return invalid("error: %v", err)
	}
	m.Err = &e
	return nil
}

func invalid(format string, args ...any) *Error { return Errorf(CodeInvalidRequest, format, args...) }
