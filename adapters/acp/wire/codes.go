package wire

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
)

// Code is what an error envelope says went wrong.
type Code string

// The codes of the draft, of its successor, and ours (from CodeTooLarge on), which
// say what those have no word for.
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

// codeRow is one line of the table of codes.
type codeRow struct {
	code   Code
	status int
}

// codeTable says what each Fault is called, and which status it has over HTTP.
var codeTable = map[core.Code]codeRow{
	core.CodeInvalid:         {CodeInvalidEnvelope, http.StatusBadRequest},
	core.CodeUnauthenticated: {CodeNotAuthorized, http.StatusUnauthorized},
	core.CodeNotAuthorized:   {CodeNotAuthorized, http.StatusForbidden},
	core.CodeUnknownAgent:    {CodePeerNotFound, http.StatusNotFound},
	core.CodeUnreachable:     {CodePeerNotFound, http.StatusBadGateway},
	core.CodeUnknownTask:     {CodePeerNotFound, http.StatusNotFound},
	core.CodeUnknownDomain:   {CodeUnknownDomain, http.StatusNotFound},
	core.CodeUnknownKind:     {CodeUnknownKind, http.StatusBadRequest},
	core.CodeUnsupported:     {CodeUnsupported, http.StatusUnprocessableEntity},
	core.CodeOverloaded:      {CodeOverloaded, http.StatusServiceUnavailable},
	core.CodeRateLimited:     {CodeRateLimited, http.StatusTooManyRequests},
	core.CodeTooLarge:        {CodeTooLarge, http.StatusRequestEntityTooLarge},
	core.CodeTimeout:         {CodeTimeout, http.StatusGatewayTimeout},
	core.CodeCancelled:       {CodeCancelled, http.StatusConflict},
	core.CodeConflict:        {CodeConflict, http.StatusConflict},
	core.CodeLoop:            {CodeLoop, http.StatusLoopDetected},
	core.CodeBudget:          {CodeBudget, http.StatusTooManyRequests},
	core.CodeInternal:        {CodeInternal, http.StatusInternalServerError},
}

// faultTable says what each code of ACP is in the hub. Of a code that stands for
// two faults, whether it is worth another try tells which.
var faultTable = map[Code]core.Code{
	CodeNotAuthorized:       core.CodeNotAuthorized,
	CodeUnknownDomain:       core.CodeUnknownDomain,
	CodeOverloaded:          core.CodeOverloaded,
	CodeInternal:            core.CodeInternal,
	CodeTimeout:             core.CodeTimeout,
	CodeCancelled:           core.CodeCancelled,
	CodeUnknownKind:         core.CodeUnknownKind,
	CodeIncompatibleVersion: core.CodeUnsupported,
	CodePeerNotFound:        core.CodeUnknownAgent,
	CodeInvalidEnvelope:     core.CodeInvalid,
	CodeUnhandled:           core.CodeUnsupported,
	CodeTooLarge:            core.CodeTooLarge,
	CodeRateLimited:         core.CodeRateLimited,
	CodeUnsupported:         core.CodeUnsupported,
	CodeConflict:            core.CodeConflict,
	CodeLoop:                core.CodeLoop,
	CodeBudget:              core.CodeBudget,
}

// Error is the payload of an error envelope. It is what is told to a peer, and as
// a Go error what the codec finds wrong.
type Error struct {
	Code      Code   `json:"code"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
	// Partial is an addition to the draft: a [Partial]. Anything else in its place
	// is the sender's own.
	Partial json.RawMessage `json:"partial,omitempty"`
}

// Error implements error.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Refusef returns an Error with a message that says what to change.
func Refusef(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// ErrorOf returns the Error that stands for a fault.
func ErrorOf(f *core.Fault) *Error {
	row, ok := codeTable[f.Code]
	if !ok {
		row = codeTable[core.CodeInternal]
	}
	return &Error{Code: row.code, Message: f.Message, Retryable: f.Retryable}
}

// Fault says an error envelope in the words of the hub. A code that it does not
// know is internal and stands in the message.
func (e *Error) Fault() *core.Fault {
	code, ok := faultTable[e.Code]
	message := e.Message
	switch {
	case !ok:
		code = core.CodeInternal
		message = strings.TrimSuffix(string(e.Code)+": "+message, ": ")
	case code == core.CodeUnknownAgent && e.Retryable:
		code = core.CodeUnreachable
	}
	return &core.Fault{Code: code, Message: message, Retryable: e.Retryable}
}

// Status returns the HTTP status that goes with an error.
func (e *Error) Status() int {
	if e.Code == CodeIncompatibleVersion {
		return http.StatusBadRequest
	}
	return HTTPStatus(e.Fault().Code)
}

// HTTPStatus returns the HTTP status that goes with a fault, or 0 for an unknown code.
func HTTPStatus(code core.Code) int { return codeTable[code].status }

// words is how the error member of a failed result says a Fault: "code: message".
func words(f *core.Fault) string {
	e := ErrorOf(f)
	if f.Code == core.CodeUnreachable {
		e.Code = codeUnreachable
	}
	return e.Error()
}

// codeUnreachable stands for peer_not_found where there is no retryable beside it
// that tells an agent which left from one that never was.
const codeUnreachable Code = "unreachable"

// faultFromWords reads what words wrote. Any other text is an internal fault with
// that message, which is what the draft has in its error member.
func faultFromWords(text string) *core.Fault {
	code, message, _ := strings.Cut(text, ": ")
	if Code(code) == codeUnreachable {
		return core.NewFault(core.CodeUnreachable, "%s", message)
	}
	if known, ok := faultTable[Code(code)]; ok {
		return core.NewFault(known, "%s", message)
	}
	return core.NewFault(core.CodeInternal, "%s", text)
}
