package jsonrpc

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// The codes of JSON-RPC 2.0, section 5.1. -32000 to -32099 belong to the protocols above it.
const (
	CodeParseError     = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternalError  = -32603
)

// Error is the error of a response. It implements error.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	// Data is any JSON value, or nil.
	Data json.RawMessage `json:"data,omitempty"`
}

// Errorf returns an Error without data.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Error implements error.
func (e *Error) Error() string { return e.Message + " (code " + strconv.Itoa(e.Code) + ")" }

// append appends the error as an object.
func (e *Error) append(to []byte) []byte {
	to = strconv.AppendInt(append(to, `{"code":`...), int64(e.Code), 10)
	to = strictjson.AppendString(append(to, `,"message":`...), e.Message)
	if len(e.Data) > 0 {
		to = append(append(to, `,"data":`...), e.Data...)
	}
	return append(to, '}')
}
