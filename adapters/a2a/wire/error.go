package wire

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Error is an error of a call, in the words of both bindings (section 5.4).
type Error struct {
	// Code is the code of the JSON-RPC binding, Status the HTTP status, and GRPC the name of
	// the gRPC status, which the HTTP+JSON binding repeats.
	Code   int
	Status int
	GRPC   string
	// Reason and Domain are those of the google.rpc.ErrorInfo.
	Reason, Domain string
	Message        string
	// Metadata is that of the ErrorInfo; nil for none.
	Metadata map[string]string
	// Violations are the members that are wrong, for invalid params.
	Violations []Violation
}

// Violation is one member that is wrong.
type Violation struct {
	Field       string `json:"field"`
	Description string `json:"description"`
}

// Error implements error.
func (e *Error) Error() string { return e.Reason + ": " + e.Message }

// The domains of reasons: of the protocol, and of the hub for what the protocol does not name.
const (
	Domain    = "a2a-protocol.org"
	HubDomain = "dragoman"
)

// The reasons of the protocol (section 5.4).
const (
	ReasonTaskNotFound          = "TASK_NOT_FOUND"
	ReasonTaskNotCancelable     = "TASK_NOT_CANCELABLE"
	ReasonPushNotSupported      = "PUSH_NOTIFICATION_NOT_SUPPORTED"
	ReasonUnsupportedOperation  = "UNSUPPORTED_OPERATION"
	ReasonContentType           = "CONTENT_TYPE_NOT_SUPPORTED"
	ReasonInvalidAgentResponse  = "INVALID_AGENT_RESPONSE"
	ReasonNoExtendedCard        = "EXTENDED_AGENT_CARD_NOT_CONFIGURED"
	ReasonExtensionRequired     = "EXTENSION_SUPPORT_REQUIRED"
	ReasonVersionNotSupported   = "VERSION_NOT_SUPPORTED"
	reasonParse                 = "PARSE_ERROR"
	reasonInvalidRequest        = "INVALID_REQUEST"
	reasonMethodNotFound        = "METHOD_NOT_FOUND"
	reasonInvalidParams         = "INVALID_PARAMS"
	reasonInternal              = "INTERNAL"
	failedPrecondition          = "FAILED_PRECONDITION"
	invalidArgument             = "INVALID_ARGUMENT"
	codeOther                   = -32000 // JSON-RPC: a server error of our own
	typeInfo                    = "type.googleapis.com/google.rpc.ErrorInfo"
	typeBadRequest              = "type.googleapis.com/google.rpc.BadRequest"
	codeParse, codeInvalidParam = -32700, -32602
)

// kind is a kind of error in both bindings.
type kind struct {
	code, status int
	grpc         string
}

// kinds are the errors of the protocol and of JSON-RPC by reason (section 5.4).
var kinds = map[string]kind{
	ReasonTaskNotFound:         {-32001, http.StatusNotFound, "NOT_FOUND"},
	ReasonTaskNotCancelable:    {-32002, http.StatusBadRequest, failedPrecondition},
	ReasonPushNotSupported:     {-32003, http.StatusBadRequest, failedPrecondition},
	ReasonUnsupportedOperation: {-32004, http.StatusBadRequest, failedPrecondition},
	ReasonContentType:          {-32005, http.StatusBadRequest, invalidArgument},
	ReasonInvalidAgentResponse: {-32006, http.StatusInternalServerError, "INTERNAL"},
	ReasonNoExtendedCard:       {-32007, http.StatusBadRequest, failedPrecondition},
	ReasonExtensionRequired:    {-32008, http.StatusBadRequest, failedPrecondition},
	ReasonVersionNotSupported:  {-32009, http.StatusBadRequest, failedPrecondition},
	reasonParse:                {codeParse, http.StatusBadRequest, invalidArgument},
	reasonInvalidRequest:       {-32600, http.StatusBadRequest, invalidArgument},
	reasonMethodNotFound:       {-32601, http.StatusNotFound, "UNIMPLEMENTED"},
	reasonInvalidParams:        {codeInvalidParam, http.StatusBadRequest, invalidArgument},
	reasonInternal:             {-32603, http.StatusInternalServerError, "INTERNAL"},
}

// NewError returns an error with a reason of the protocol.
func NewError(reason, message string) *Error {
	k := kinds[reason]
	return &Error{Code: k.code, Status: k.status, GRPC: k.grpc, Reason: reason, Domain: Domain, Message: message}
}

// ParseError is the error for a body that is no JSON.
func ParseError(message string) *Error { return NewError(reasonParse, message) }

// InvalidRequest is the error for a body that is no request.
func InvalidRequest(message string) *Error { return NewError(reasonInvalidRequest, message) }

// MethodNotFound is the error for an unknown method or path.
func MethodNotFound(message string) *Error { return NewError(reasonMethodNotFound, message) }

// invalidParams is the error for a request with a wrong member: an error of this package.
func invalidParams(err error) *Error {
	e := NewError(reasonInvalidParams, err.Error())
	var at *strictjson.Error
	if errors.As(err, &at) && at.Path != "" {
		e.Violations = []Violation{{at.Path, at.Problem}}
	}
	return e
}

// reasons are the reasons of the faults that the protocol has a word for.
var reasons = map[core.Code]string{
	core.CodeInvalid:     reasonInvalidParams,
	core.CodeUnknownTask: ReasonTaskNotFound,
	core.CodeUnsupported: ReasonUnsupportedOperation,
	core.CodeUnknownKind: ReasonUnsupportedOperation,
	core.CodeInternal:    reasonInternal,
}

// others are the faults that the protocol has no word for: in JSON-RPC they are server errors
// of our own, told apart by the reason.
var others = map[core.Code]kind{
	core.CodeUnauthenticated: {codeOther, http.StatusUnauthorized, "UNAUTHENTICATED"},
	core.CodeNotAuthorized:   {codeOther, http.StatusForbidden, "PERMISSION_DENIED"},
	core.CodeUnknownAgent:    {codeOther, http.StatusNotFound, "NOT_FOUND"},
	core.CodeUnknownDomain:   {codeOther, http.StatusNotFound, "NOT_FOUND"},
	core.CodeUnreachable:     {codeOther, http.StatusServiceUnavailable, "UNAVAILABLE"},
	core.CodeOverloaded:      {codeOther, http.StatusServiceUnavailable, "UNAVAILABLE"},
	core.CodeRateLimited:     {codeOther, http.StatusTooManyRequests, "RESOURCE_EXHAUSTED"},
	core.CodeBudget:          {codeOther, http.StatusTooManyRequests, "RESOURCE_EXHAUSTED"},
	core.CodeTooLarge:        {codeOther, http.StatusRequestEntityTooLarge, invalidArgument},
	core.CodeTimeout:         {codeOther, http.StatusGatewayTimeout, "DEADLINE_EXCEEDED"},
	core.CodeCancelled:       {codeOther, http.StatusConflict, "CANCELLED"},
	core.CodeConflict:        {codeOther, http.StatusConflict, "ABORTED"},
	core.CodeLoop:            {codeOther, http.StatusLoopDetected, failedPrecondition},
}

// ErrorOf returns the error of the protocol for err: an *Error, an error of this package or a
// Fault.
func ErrorOf(err error) *Error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	var at *strictjson.Error
	if errors.As(err, &at) {
		return invalidParams(at)
	}
	f := core.AsFault(err)
	if reason := reasons[f.Code]; reason != "" {
		return NewError(reason, f.Message)
	}
	k, ok := others[f.Code]
	if !ok {
		return NewError(reasonInternal, core.InternalMessage)
	}
	e := &Error{Code: k.code, Status: k.status, GRPC: k.grpc, Reason: strings.ToUpper(string(f.Code)), Domain: HubDomain, Message: f.Message}
	if f.Retryable {
		e.Metadata = map[string]string{"retryable": "true"}
	}
	return e
}

// Fault returns the neutral fault of an error that a peer sent.
func (e *Error) Fault() *core.Fault {
	code := e.neutral()
	f := core.NewFault(code, "%s", cmp.Or(e.Message, "the agent gave no reason"))
	f.Retryable = f.Retryable || e.Metadata["retryable"] == "true"
	if reason := reasons[code]; e.Reason != "" && e.Domain == Domain && e.Reason != reason {
		f.PeerCode = e.Reason
	}
	return f
}

// neutral returns the neutral code of the error.
func (e *Error) neutral() core.Code {
	switch {
	case e.Domain == HubDomain && others[core.Code(strings.ToLower(e.Reason))].status != 0:
		return core.Code(strings.ToLower(e.Reason))
	case e.Status == http.StatusUnauthorized || e.GRPC == "UNAUTHENTICATED":
		return core.CodeUnauthenticated
	case e.Status == http.StatusForbidden || e.GRPC == "PERMISSION_DENIED":
		return core.CodeNotAuthorized
	case e.Status == http.StatusTooManyRequests:
		return core.CodeRateLimited
	case e.Status == http.StatusServiceUnavailable, e.Status == http.StatusBadGateway:
		return core.CodeUnreachable
	case e.Status == http.StatusGatewayTimeout:
		return core.CodeTimeout
	case e.Reason == ReasonTaskNotFound:
		return core.CodeUnknownTask
	case e.Reason == ReasonTaskNotCancelable:
		return core.CodeConflict
	case e.Reason == reasonInvalidParams, e.Reason == reasonInvalidRequest, e.Reason == reasonParse:
		return core.CodeInvalid
	case e.Reason == reasonMethodNotFound, kinds[e.Reason].grpc == failedPrecondition, e.Reason == ReasonContentType:
		return core.CodeUnsupported
	}
	return core.CodeInternal
}

// Details returns the list of details: error.data of the JSON-RPC binding, error.details of
// the other.
func (e *Error) Details() json.RawMessage {
	type info struct {
		Type     string            `json:"@type"`
		Reason   string            `json:"reason"`
		Domain   string            `json:"domain"`
		Metadata map[string]string `json:"metadata,omitempty"`
	}
	type badRequest struct {
		Type       string      `json:"@type"`
		Violations []Violation `json:"fieldViolations"`
	}
	all := []any{}
	if e.Reason != "" {
		all = append(all, info{typeInfo, e.Reason, cmp.Or(e.Domain, Domain), e.Metadata})
	}
	if e.Violations != nil {
		all = append(all, badRequest{typeBadRequest, e.Violations})
	}
	raw, _ := Marshal(all) // texts always encode
	return raw
}

// Body returns the body of the error in the HTTP+JSON binding (section 11.6).
func (e *Error) Body() []byte {
	raw, _ := Marshal(map[string]any{"error": struct { // texts always encode
		Code    int             `json:"code"`
		Status  string          `json:"status"`
		Message string          `json:"message"`
		Details json.RawMessage `json:"details"`
	}{e.Status, e.GRPC, e.Message, e.Details()}})
	return raw
}

// ReadError returns the error that a peer sent: its code and message, and what its details
// say. status is the HTTP status of the answer; code is 0 in the HTTP+JSON binding.
func ReadError(status, code int, message string, details strictjson.Value) *Error {
	e := &Error{Code: code, Status: status, Message: message}
	for reason, k := range kinds {
		if code != 0 && k.code == code {
			e.Reason, e.Domain, e.GRPC = reason, Domain, k.grpc
			if status < http.StatusBadRequest {
				e.Status = k.status
			}
		}
	}
	for d := range details.Items() {
		switch kind, _ := d.Get("@type").Text(); kind {
		case typeInfo:
			var metadata map[string]string
			if d.Get("metadata").Decode(&metadata) == nil {
				e.Metadata = maps.Clone(metadata)
			}
			if reason, ok := d.Get("reason").Text(); ok {
				e.Reason = reason
			}
			e.Domain, _ = d.Get("domain").Text()
		case typeBadRequest:
			for v := range d.Get("fieldViolations").Items() {
				field, _ := v.Get("field").Text()
				description, _ := v.Get("description").Text()
				e.Violations = append(e.Violations, Violation{field, description})
			}
		}
	}
	return e
}

// ReadErrorBody returns the error in a body of the HTTP+JSON binding. A body of another form
// leaves only the status.
func ReadErrorBody(status int, body []byte) *Error {
	v, err := Parse(body)
	if err != nil || v.Kind() != strictjson.Object {
		return &Error{Status: status, Message: http.StatusText(status)}
	}
	at := v.Get("error")
	if at.Kind() != strictjson.Object {
		at = v
	}
	message, _ := at.Get("message").Text()
	if message == "" { // RFC 9457
		message, _ = at.Get("detail").Text()
	}
	e := ReadError(status, 0, cmp.Or(message, http.StatusText(status)), at.Get("details"))
	e.GRPC, _ = at.Get("status").Text()
	return e
}
