package wire

import (
	"cmp"
	"encoding/json"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// The codes of error messages, which are about the protocol and not about a task, and
// those of task_error that code refers to.
const (
	CodeInvalidMessage    = "INVALID_MESSAGE"
	CodeMessageTooLarge   = "MESSAGE_TOO_LARGE"
	CodeNotRegistered     = "NOT_REGISTERED"
	CodeRegisterTimeout   = "REGISTER_TIMEOUT"
	CodeDuplicateName     = "DUPLICATE_NAME"
	CodeExpired           = "AUTHENTICATION_EXPIRED"
	CodeTaskNotHeld       = "TASK_NOT_HELD"
	CodeHeartbeatMissed   = "HEARTBEAT_MISSED"
	CodeInvalidSignature  = "INVALID_SIGNATURE"
	CodeSignatureRequired = "SIGNATURE_REQUIRED"
	codeRejected          = "REJECTED"
	CodeProcessing        = "PROCESSING_ERROR"
	CodeCancelled         = "CANCELLED"
	CodeRateLimited       = "RATE_LIMITED"
	CodeUnsupported       = "UNSUPPORTED"
)

// Replaced is the Peer of the Fault with which an agent's Work ends when a newer
// connection of the same principal replaced it. Reconnecting would only replace that one.
const Replaced = "REPLACED"

// codes maps the codes of a Fault to those of task_error and error. The names are those
// of the project's documentation where it has one.
var codes = map[core.Code]string{
	core.CodeInvalid:         "VALIDATION_ERROR",
	core.CodeUnauthenticated: "UNAUTHORIZED",
	core.CodeNotAuthorized:   "FORBIDDEN",
	core.CodeUnknownAgent:    "NOT_FOUND",
	core.CodeUnknownTask:     "UNKNOWN_TASK",
	core.CodeUnreachable:     "UNREACHABLE",
	core.CodeUnknownDomain:   "UNKNOWN_DOMAIN",
	core.CodeUnknownKind:     "UNKNOWN_TYPE",
	core.CodeUnsupported:     CodeUnsupported,
	core.CodeOverloaded:      "OVERLOADED",
	core.CodeRateLimited:     CodeRateLimited,
	core.CodeTooLarge:        "TOO_LARGE",
	core.CodeTimeout:         "TIMEOUT",
	core.CodeCancelled:       CodeCancelled,
	core.CodeConflict:        "CONFLICT",
	core.CodeLoop:            "LOOP",
	core.CodeBudget:          "BUDGET_EXCEEDED",
	core.CodeInternal:        "INTERNAL_ERROR",
}

// faultCodes maps codes of this dialect to those of a Fault; a code in neither map is
// internal. REJECTED refuses the task for good: it is not overloaded, after which the
// same agent may be asked again.
var faultCodes = func() map[string]core.Code {
	back := map[string]core.Code{
		codeRejected:          core.CodeUnsupported,
		"NO_AGENTS":           core.CodeUnreachable,
		CodeInvalidMessage:    core.CodeInvalid,
		CodeMessageTooLarge:   core.CodeTooLarge,
		"AUTH_FAILED":         core.CodeUnauthenticated,
		CodeExpired:           core.CodeUnauthenticated,
		CodeTaskNotHeld:       core.CodeUnknownTask,
		CodeDuplicateName:     core.CodeConflict,
		Replaced:              core.CodeConflict,
		CodeInvalidSignature:  core.CodeUnauthenticated,
		CodeSignatureRequired: core.CodeUnauthenticated,
		CodeProcessing:        core.CodeInternal,
	}
	for neutral, own := range codes {
		back[own] = neutral
	}
	return back
}()

// TaskError is the payload of task_error (page, "Task Error").
type TaskError struct {
	TaskRef
	Error     ErrorDetail `json:"error"`
	Retryable *bool       `json:"retryable,omitempty"`
	// PartialResult is the answer so far, in the form of a result, and Metadata is that
	// of a result. They are additions to the page, for a peer without task_progress.
	PartialResult json.RawMessage `json:"partialResult,omitempty"`
	Metadata      ResultMetadata  `json:"metadata,omitzero"`
	// Omitted replaces a partial result that does not fit.
	Omitted *Omitted `json:"omitted,omitempty"`

	parsed strictjson.Value // of PartialResult
}

// readPayload does not copy the partial result, which may be long.
func (e *TaskError) readPayload(payload strictjson.Value) error {
	var in struct {
		TaskError
		PartialResult strictjson.Value `json:"partialResult"`
	}
	err := payload.Decode(&in)
	*e = in.TaskError
	e.PartialResult, e.parsed = in.PartialResult.Raw(), in.PartialResult
	e.Metadata.readProgress(payload)
	return err
}

// ErrorDetail is the code and the message of an error.
type ErrorDetail struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// ErrorShape names the members of task_error that the hub knows.
var ErrorShape = shape{
	"requestId": nil, "taskId": nil, "executionId": nil, "retryable": nil, "partialResult": nil,
	"error": shape{"code": nil, "message": nil}, "metadata": metadataShape,
}

// Bodies returns the events of a task_error, the end last. For streamed and counted see
// [TaskResult.Bodies].
func (e TaskError) Bodies(streamed, counted bool) []core.Body {
	bs, streamed := e.Metadata.events(streamed, counted)
	return append(append(bs, partialBodies(parseResult(e.parsed.Of(e.PartialResult)), streamed)...), e.End())
}

// End returns how the task ended: failed, or cancelled by the agent as requested.
func (e TaskError) End() core.Body {
	if e.Error.Code == CodeCancelled {
		return core.Cancelled{Reason: e.Error.Message}
	}
	return core.Failed{Fault: e.Fault()}
}

// Fault returns the Fault of a task_error. Without retryable, a rejected task may go to
// another agent, and any other code decides by itself.
func (e TaskError) Fault() *core.Fault {
	code := cmp.Or(faultCodes[e.Error.Code], core.CodeInternal)
	f := core.NewFault(code, "%s", cmp.Or(e.Error.Message, "the agent gave no reason"))
	f.Retryable = f.Retryable || e.Error.Code == codeRejected
	if e.Retryable != nil {
		f.Retryable = *e.Retryable
	}
	if e.Error.Code != codes[code] {
		f.PeerCode = e.Error.Code
	}
	return f
}

// CodeOf returns the code of a Fault in this dialect.
func CodeOf(f *core.Fault) string { return errorOf(f, nil).Code }

// errorOf returns a Fault in this dialect, with the agent's own code if the agent was of
// this dialect; nil for none.
func errorOf(f *core.Fault, foreign *core.Foreign) *ErrorDetail {
	if f == nil {
		return nil
	}
	code := cmp.Or(codes[f.Code], codes[core.CodeInternal])
	if _, own := faultCodes[f.PeerCode]; own || (f.PeerCode != "" && foreign != nil && foreign.Dialect == Dialect) {
		code = f.PeerCode
	}
	return &ErrorDetail{Code: code, Message: f.Message}
}

// TaskErrorOf returns the task_error for the end of a task that was not done.
func TaskErrorOf(ref TaskRef, f *core.Fault, foreign *core.Foreign) TaskError {
	return TaskError{TaskRef: ref, Error: *errorOf(f, foreign), Retryable: &f.Retryable}
}

// WithCode returns a Foreign even if there is nothing to keep when the end has a code of
// the agent's own: it marks the code as one of this dialect, so that a peer gets it.
func WithCode(f *core.Foreign, end core.Body) *core.Foreign {
	if failed, ok := end.(core.Failed); ok && f == nil && failed.Fault.PeerCode != "" {
		f = &core.Foreign{Dialect: Dialect}
	}
	return f
}
