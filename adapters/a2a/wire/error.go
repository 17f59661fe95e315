package wire

import (
	"cmp"
	"encoding/json"
	"errors"
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
	ReasonTaskNotFound         = "TASK_NOT_FOUND"
	ReasonTaskNotCancelable    = "TASK_NOT_CANCELABLE"
	ReasonPushNotSupported     = "PUSH_NOTIFICATION_NOT_SUPPORTED"
	ReasonUnsupportedOperation = "UNSUPPORTED_OPERATION"
	ReasonContentType          = "CONTENT_TYPE_NOT_SUPPORTED"
	ReasonInvalidAgentResponse = "INVALID_AGENT_RESPONSE"
	ReasonNoExtendedCard       = "EXTENDED_AGENT_CARD_NOT_CONFIGURED"
	ReasonExtensionRequired    = "EXTENSION_SUPPORT_REQUIRED"
	ReasonVersionNotSupported  = "VERSION_NOT_SUPPORTED"
	reasonParse                = "PARSE_ERROR"
	reasonInvalidRequest       = "INVALID_REQUEST"
	reasonMethodNotFound       = "METHOD_NOT_FOUND"
	reasonInvalidParams        = "INVALID_PARAMS"
	reasonInternal             = "INTERNAL"
)

// Names of gRPC statuses, and the types of details.
const (
	failedPrecondition = "FAILED_PRECONDITION"
	invalidArgument    = "INVALID_ARGUMENT"
	typeInfo           = "type.googleapis.com/google.rpc.ErrorInfo"
	typeBadRequest     = "type.googleapis.com/google.rpc.BadRequest"
)

// kind is a kind of error in every binding, and what it is for the hub.
type kind struct {
	code, status int
	grpc         string
	fault        core.Code
}

// kinds are the errors of the protocol and of JSON-RPC by reason (section 5.4).
var kinds = map[string]kind{
	ReasonTaskNotFound:         {-32001, http.StatusNotFound, "NOT_FOUND", core.CodeUnknownTask},
	ReasonTaskNotCancelable:    {-32002, http.StatusBadRequest, failedPrecondition, core.CodeConflict},
	ReasonPushNotSupported:     {-32003, http.StatusBadRequest, failedPrecondition, core.CodeUnsupported},
	ReasonUnsupportedOperation: {-32004, http.StatusBadRequest, failedPrecondition, core.CodeUnsupported},
	ReasonContentType:          {-32005, http.StatusBadRequest, invalidArgument, core.CodeUnsupported},
	ReasonInvalidAgentResponse: {-32006, http.StatusInternalServerError, "INTERNAL", core.CodeInternal},
	ReasonNoExtendedCard:       {-32007, http.StatusBadRequest, failedPrecondition, core.CodeUnsupported},
	ReasonExtensionRequired:    {-32008, http.StatusBadRequest, failedPrecondition, core.CodeUnsupported},
	ReasonVersionNotSupported:  {-32009, http.StatusBadRequest, failedPrecondition, core.CodeUnsupported},
	reasonParse:                {-32700, http.StatusBadRequest, invalidArgument, core.CodeInvalid},
	reasonInvalidRequest:       {-32600, http.StatusBadRequest, invalidArgument, core.CodeInvalid},
	reasonMethodNotFound:       {-32601, http.StatusNotFound, "UNIMPLEMENTED", core.CodeUnsupported},
	reasonInvalidParams:        {-32602, http.StatusBadRequest, invalidArgument, core.CodeInvalid},
	reasonInternal:             {-32603, http.StatusInternalServerError, "INTERNAL", core.CodeInternal},
}

// NewError returns an error with a reason of the protocol.
func NewError(reason, message string) *Error { return kinds[reason].error(reason, Domain, message) }

func (k kind) error(reason, domain, message string) *Error {
	return &Error{Code: k.code, Status: k.status, GRPC: k.grpc, Reason: reason, Domain: domain, Message: message}
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
	core.CodeUnauthenticated: {-32000, http.StatusUnauthorized, "UNAUTHENTICATED", ""},
	core.CodeNotAuthorized:   {-32000, http.StatusForbidden, "PERMISSION_DENIED", ""},
	core.CodeUnknownAgent:    {-32000, http.StatusNotFound, "NOT_FOUND", ""},
	core.CodeUnknownDomain:   {-32000, http.StatusNotFound, "NOT_FOUND", ""},
	core.CodeUnreachable:     {-32000, http.StatusServiceUnavailable, "UNAVAILABLE", ""},
	core.CodeOverloaded:      {-32000, http.StatusServiceUnavailable, "UNAVAILABLE", ""},
	core.CodeRateLimited:     {-32000, http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", ""},
	core.CodeBudget:          {-32000, http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", ""},
	core.CodeTooLarge:        {-32000, http.StatusRequestEntityTooLarge, invalidArgument, ""},
	core.CodeTimeout:         {-32000, http.StatusGatewayTimeout, "DEADLINE_EXCEEDED", ""},
	core.CodeCancelled:       {-32000, http.StatusConflict, "CANCELLED", ""},
	core.CodeConflict:        {-32000, http.StatusConflict, "ABORTED", ""},
	core.CodeLoop:            {-32000, http.StatusLoopDetected, failedPrecondition, ""},
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
	e := k.error(strings.ToUpper(string(f.Code)), HubDomain, f.Message)
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

// statuses are the faults of HTTP statuses, whatever the reason.
var statuses = map[int]core.Code{
	http.StatusUnauthorized: core.CodeUnauthenticated, http.StatusForbidden: core.CodeNotAuthorized, http.StatusTooManyRequests: core.CodeRateLimited,
	http.StatusServiceUnavailable: core.CodeUnreachable, http.StatusBadGateway: core.CodeUnreachable, http.StatusGatewayTimeout: core.CodeTimeout,
}

// neutral returns the neutral code of the error.
func (e *Error) neutral() core.Code {
	own := core.Code(strings.ToLower(e.Reason))
	switch {
	case e.Domain == HubDomain && others[own].status != 0:
		return own
	case e.GRPC == "UNAUTHENTICATED":
		return core.CodeUnauthenticated
	case e.GRPC == "PERMISSION_DENIED":
		return core.CodeNotAuthorized
	}
	return cmp.Or(statuses[e.Status], kinds[e.Reason].fault, core.CodeInternal)
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
	return strictjson.Encode(all)
}

// Body returns the body of the error in the HTTP+JSON binding (section 11.6).
func (e *Error) Body() []byte {
	return strictjson.Encode(map[string]any{"error": struct {
		Code    int             `json:"code"`
		Status  string          `json:"status"`
		Message string          `json:"message"`
		Details json.RawMessage `json:"details"`
	}{e.Status, e.GRPC, e.Message, e.Details()}})
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
			_ = d.Get("metadata").Decode(&e.Metadata) // other metadata is not looked at
			if reason, ok := d.Get("reason").Text(); ok {
				e.Reason = reason
			}
			e.Domain, _ = d.Get("domain").Text()
		case typeBadRequest:
			_ = d.Get("fieldViolations").Decode(&e.Violations)
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
