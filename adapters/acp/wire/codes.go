package wire

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
)

// Code is the code of an error envelope.
type Code string

// The codes of the draft, of its successor, and ours (from CodeTooLarge on) for what those
// have no code for.
const (
	CodeNotAuthorized       Code = "not_authorized"
	CodeUnknownDomain       Code = "unknown_domain"
	CodeOverloaded          Code = "overloaded"
	CodeInternal            Code = "internal"
	CodeTimeout             Code = "timeout"
	CodeCancelled           Code = "cancelled"
	CodeUnknownKind         Code = "unknown_kind"
	CodeIncompatibleVersion Code = "incompatible_version"
	CodePeerNotFound        Code = "peer_not_found"
	CodeInvalidEnvelope     Code = "invalid_envelope"
	CodeUnhandled           Code = "unhandled"
	CodeTooLarge            Code = "too_large"
	CodeRateLimited         Code = "rate_limited"
	CodeUnsupported         Code = "unsupported"
	CodeConflict            Code = "conflict"
	CodeLoop                Code = "loop"
	CodeBudget              Code = "budget"
)

// codes pairs each fault with its code and HTTP status. The first row of a fault gives its
// code, the first row of a code its fault.
var codes = []codeRow{
	{core.CodeInvalid, CodeInvalidEnvelope, http.StatusBadRequest},
	{core.CodeNotAuthorized, CodeNotAuthorized, http.StatusForbidden},
	{core.CodeUnauthenticated, CodeNotAuthorized, http.StatusUnauthorized},
	{core.CodeUnreachable, CodePeerNotFound, http.StatusBadGateway}, // if retryable, see row
	{core.CodeUnknownAgent, CodePeerNotFound, http.StatusNotFound},
	{core.CodeUnknownTask, CodePeerNotFound, http.StatusNotFound},
	{core.CodeUnknownDomain, CodeUnknownDomain, http.StatusNotFound},
	{core.CodeUnknownKind, CodeUnknownKind, http.StatusBadRequest},
	{core.CodeUnsupported, CodeUnsupported, http.StatusUnprocessableEntity},
	{core.CodeUnsupported, CodeUnhandled, http.StatusUnprocessableEntity},
	{core.CodeUnsupported, CodeIncompatibleVersion, http.StatusBadRequest},
	{core.CodeOverloaded, CodeOverloaded, http.StatusServiceUnavailable},
	{core.CodeRateLimited, CodeRateLimited, http.StatusTooManyRequests},
	{core.CodeTooLarge, CodeTooLarge, http.StatusRequestEntityTooLarge},
	{core.CodeTimeout, CodeTimeout, http.StatusGatewayTimeout},
	{core.CodeCancelled, CodeCancelled, http.StatusConflict},
	{core.CodeConflict, CodeConflict, http.StatusConflict},
	{core.CodeLoop, CodeLoop, http.StatusLoopDetected},
	{core.CodeBudget, CodeBudget, http.StatusTooManyRequests},
	{core.CodeInternal, CodeInternal, http.StatusInternalServerError},
}

type codeRow struct {
	fault  core.Code
	code   Code
	status int
}

// rowOf returns the first row of a fault, or a zero row.
func rowOf(fault core.Code) codeRow {
	for _, r := range codes {
		if r.fault == fault {
			return r
		}
	}
	return codeRow{}
}

// Error is the payload of an error envelope, and the Go error that the codec returns.
type Error struct {
	Code      Code   `json:"code"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
	// Partial is an addition to the draft: a [Partial]. Anything else in its place is
	// ignored.
	Partial json.RawMessage `json:"partial,omitempty"`
}

// Error implements error.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Refusef returns an Error with a message that says what to change.
func Refusef(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// ErrorOf returns a fault as an Error.
func ErrorOf(f *core.Fault) *Error {
	return &Error{Code: cmp.Or(rowOf(f.Code).code, CodeInternal), Message: f.Message, Retryable: f.Retryable}
}

// AsError returns err as an Error for a peer, with advice where the message of a fault,
// which is for every dialect, has none.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	f := core.AsFault(err)
	e = ErrorOf(f)
	switch f.Code {
	case core.CodeUnknownAgent:
		e.Message += "; send a discover without to for a list"
	case core.CodeUnknownDomain:
		e.Message += "; send a discover without to for those that are served, or say in to whom to ask"
	}
	return e
}

// row returns the row of the code, or a zero row. Only a retryable peer_not_found is of an
// agent that left.
func (e *Error) row() codeRow {
	for _, r := range codes {
		if r.code == e.Code && (r.fault != core.CodeUnreachable || e.Retryable) {
			return r
		}
	}
	return codeRow{}
}

// Fault returns the error as a fault. An unknown code is internal, and part of the message.
func (e *Error) Fault() *core.Fault {
	f := &core.Fault{Code: e.row().fault, Message: e.Message, Retryable: e.Retryable}
	if f.Code == "" {
		f.Code = core.CodeInternal
		f.Message = strings.TrimSuffix(string(e.Code)+": "+e.Message, ": ")
	}
	return f
}

// Status returns the HTTP status of an error.
func (e *Error) Status() int { return cmp.Or(e.row().status, http.StatusInternalServerError) }

// HTTPStatus returns the HTTP status of a fault, or 0 for an unknown code.
func HTTPStatus(code core.Code) int { return rowOf(code).status }

// resultError returns a fault as the error member of a failed result: "code: message".
func resultError(f *core.Fault) string {
	e := ErrorOf(f)
	if f.Code == core.CodeUnreachable {
		e.Code = codeUnreachable
	}
	return e.Error()
}

// codeUnreachable replaces peer_not_found where there is no retryable member to distinguish
// an agent that left from an unknown one.
const codeUnreachable Code = "unreachable"

// resultFault parses what resultError returns. Any other text, which is what the draft has
// in the error member, is an internal fault with that message.
func resultFault(text string) *core.Fault {
	code, message, _ := strings.Cut(text, ": ")
	if Code(code) == codeUnreachable {
		return core.NewFault(core.CodeUnreachable, "%s", message)
	}
	if known := (&Error{Code: Code(code)}).row().fault; known != "" {
		return core.NewFault(known, "%s", message)
	}
	return core.NewFault(core.CodeInternal, "%s", text)
}
