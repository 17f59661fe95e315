package wire

import (
	"encoding/json"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// The codes of error messages that are about the protocol and not about a task.
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

// Replaced is the Peer of the Fault with which [Work] ends when a newer connection of
// the same principal took the place of the agent. Coming back would only take it back.
const Replaced = "REPLACED"

// codes is the table from the codes of a Fault to those of task_error and error.
// Where the project's documentation has a name, that is it.
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

// CodeName is what this dialect calls a code; "" for one that the table lacks.
func CodeName(code core.Code) string { return codes[code] }

// faultCodes is the table back. A code that is in neither table is internal. REJECTED
// says "not me": it is not overloaded, which the same agent may be asked again for.
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
	About
	Error     ErrorDetail `json:"error"`
	Retryable *bool       `json:"retryable,omitempty"`
	// PartialResult is the answer as far as it went, in the form of a result, and
	// Metadata what a result has there. They are additions to the page, for a peer
	// without task_progress.
	PartialResult json.RawMessage `json:"partialResult,omitempty"`
	Metadata      ResultMetadata  `json:"metadata,omitzero"`
	// Omitted stands for a partial result that does not fit.
	Omitted *Omitted `json:"omitted,omitempty"`

	read strictjson.Value // what was read of the partial result
}

// readPayload leaves the partial result in the message, for it may be long.
func (e *TaskError) readPayload(payload strictjson.Value) error {
	var in struct {
		TaskError
		PartialResult strictjson.Value `json:"partialResult"`
	}
	err := payload.Decode(&in)
	*e = in.TaskError
	e.PartialResult, e.read = in.PartialResult.Raw(), in.PartialResult
	e.Metadata.readMetadata(payload)
	return err
}

// ErrorDetail is the code and the message of an error.
type ErrorDetail struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// ErrorShape is what has a meaning in task_error.
var ErrorShape = shape{
	"requestId": nil, "taskId": nil, "executionId": nil, "retryable": nil, "partialResult": nil,
	"error": shape{"code": nil, "message": nil}, "metadata": metadataShape,
}

// Bodies are the events that a task_error stands for, the end last. What streamed
// and counted say is as in taskResult.bodies.
func (e TaskError) Bodies(streamed, counted bool) []core.Body {
	bs, streamed := e.Metadata.bodies(streamed, counted)
	return append(append(bs, read(e.read.Of(e.PartialResult)).partial(streamed)...), e.End())
}

// End is what a task_error says: that the task failed, or that the agent stopped
// it as it was told to.
func (e TaskError) End() core.Body {
	if e.Error.Code == CodeCancelled {
		return core.Cancelled{Reason: e.Error.Message}
	}
	return core.Failed{Fault: e.Fault()}
}

// Fault is the Fault behind a task_error. Without a word on retrying, another agent may
// be asked what this one rejected, and anything else is retried as its code says.
func (e TaskError) Fault() *core.Fault {
	code, known := faultCodes[e.Error.Code]
	if !known {
		code = core.CodeInternal
	}
	message := e.Error.Message
	if message == "" {
		message = "the agent gave no reason"
	}
	f := core.NewFault(code, "%s", message)
	f.Retryable = f.Retryable || e.Error.Code == codeRejected // by another agent
	if e.Retryable != nil {
		f.Retryable = *e.Retryable
	}
	if e.Error.Code != codes[code] {
		f.Peer = e.Error.Code
	}
	return f
}

// errorOf words a Fault in this dialect, in the agent's own code when the agent
// was of this dialect.
func errorOf(f *core.Fault, foreign *core.Foreign) *ErrorDetail {
	if f == nil {
		return nil
	}
	code, known := codes[f.Code]
	if !known {
		code = codes[core.CodeInternal]
	}
	if _, own := faultCodes[f.Peer]; own || (f.Peer != "" && foreign != nil && foreign.Dialect == Dialect) {
		code = f.Peer
	}
	return &ErrorDetail{Code: code, Message: f.Message}
}

// TaskErrorOf is the task_error for the end of a task that was not done.
func TaskErrorOf(a About, f *core.Fault, foreign *core.Foreign) TaskError {
	return TaskError{About: a, Error: *errorOf(f, foreign), Retryable: &f.Retryable}
}

// WithCode marks a Fault with a code of the agent's own as one of this dialect,
// even where there is nothing else to keep: a peer is told that code again.
func WithCode(f *core.Foreign, end core.Body) *core.Foreign {
	if failed, ok := end.(core.Failed); ok && f == nil && failed.Fault.Peer != "" {
		f = &core.Foreign{Dialect: Dialect}
	}
	return f
}
