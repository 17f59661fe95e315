package parallax

import (
	"encoding/json"

	"github.com/dragoman-hub/dragoman/core"
)

// The codes of error messages that are about the protocol and not about a task.
const (
	codeInvalidMessage    = "INVALID_MESSAGE"
	codeMessageTooLarge   = "MESSAGE_TOO_LARGE"
	codeNotRegistered     = "NOT_REGISTERED"
	codeRegisterTimeout   = "REGISTER_TIMEOUT"
	codeDuplicateName     = "DUPLICATE_NAME"
	codeExpired           = "AUTHENTICATION_EXPIRED"
	codeTaskNotHeld       = "TASK_NOT_HELD"
	codeHeartbeatMissed   = "HEARTBEAT_MISSED"
	codeInvalidSignature  = "INVALID_SIGNATURE"
	codeSignatureRequired = "SIGNATURE_REQUIRED"
	codeRejected          = "REJECTED"
	codeProcessing        = "PROCESSING_ERROR"
	codeCancelled         = "CANCELLED"
	codeRateLimited       = "RATE_LIMITED"
	codeUnsupported       = "UNSUPPORTED"
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
	core.CodeUnsupported:     codeUnsupported,
	core.CodeOverloaded:      "OVERLOADED",
	core.CodeRateLimited:     codeRateLimited,
	core.CodeTooLarge:        "TOO_LARGE",
	core.CodeTimeout:         "TIMEOUT",
	core.CodeCancelled:       codeCancelled,
	core.CodeConflict:        "CONFLICT",
	core.CodeLoop:            "LOOP",
	core.CodeBudget:          "BUDGET_EXCEEDED",
	core.CodeInternal:        "INTERNAL_ERROR",
}

// faultCodes is the table back. A code that is in neither table is internal. REJECTED
// says "not me": it is not overloaded, which the same agent may be asked again for.
var faultCodes = func() map[string]core.Code {
	back := map[string]core.Code{
		codeRejected:          core.CodeUnsupported,
		"NO_AGENTS":           core.CodeUnreachable,
		codeInvalidMessage:    core.CodeInvalid,
		codeMessageTooLarge:   core.CodeTooLarge,
		"AUTH_FAILED":         core.CodeUnauthenticated,
		codeExpired:           core.CodeUnauthenticated,
		codeTaskNotHeld:       core.CodeUnknownTask,
		codeDuplicateName:     core.CodeConflict,
		Replaced:              core.CodeConflict,
		codeInvalidSignature:  core.CodeUnauthenticated,
		codeSignatureRequired: core.CodeUnauthenticated,
		codeProcessing:        core.CodeInternal,
	}
	for neutral, own := range codes {
		back[own] = neutral
	}
	return back
}()

// taskError is the payload of task_error (page, "Task Error").
type taskError struct {
	about
	Error     errorMsg `json:"error"`
	Retryable *bool    `json:"retryable,omitempty"`
	// PartialResult is the answer as far as it went, in the form of a result, and
	// Metadata what a result has there. They are additions to the page, for a peer
	// without task_progress.
	PartialResult json.RawMessage `json:"partialResult,omitempty"`
	Metadata      resultMetadata  `json:"metadata,omitzero"`
	// Omitted stands for a partial result that does not fit.
	Omitted *omitted `json:"omitted,omitempty"`
}

type errorMsg struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

var errorShape = shape{
	"requestId": nil, "taskId": nil, "executionId": nil, "retryable": nil, "partialResult": nil,
	"error": shape{"code": nil, "message": nil}, "metadata": metadataShape,
}

// bodies are the events that a task_error stands for, the end last. What streamed
// and counted say is as in taskResult.bodies.
func (e taskError) bodies(streamed, counted bool) []core.Body {
	bs, streamed := e.Metadata.bodies(streamed, counted)
	return append(append(bs, read(e.PartialResult).partial(streamed)...), e.end())
}

// end is what a task_error says: that the task failed, or that the agent stopped
// it as it was told to.
func (e taskError) end() core.Body {
	if e.Error.Code == codeCancelled {
		return core.Cancelled{Reason: e.Error.Message}
	}
	return core.Failed{Fault: e.fault()}
}

// fault is the Fault behind a task_error. Without a word on retrying, another agent may
// be asked what this one rejected, and anything else is retried as its code says.
func (e taskError) fault() *core.Fault {
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
func errorOf(f *core.Fault, foreign *core.Foreign) *errorMsg {
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
	return &errorMsg{Code: code, Message: f.Message}
}

// taskErrorOf is the task_error for the end of a task that was not done.
func taskErrorOf(a about, f *core.Fault, foreign *core.Foreign) taskError {
	return taskError{about: a, Error: *errorOf(f, foreign), Retryable: &f.Retryable}
}

// withCode marks a Fault with a code of the agent's own as one of this dialect,
// even where there is nothing else to keep: a peer is told that code again.
func withCode(f *core.Foreign, end core.Body) *core.Foreign {
	if failed, ok := end.(core.Failed); ok && f == nil && failed.Fault.Peer != "" {
		f = &core.Foreign{Dialect: Dialect}
	}
	return f
}
