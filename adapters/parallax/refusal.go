package parallax

import (
	"encoding/json"

	"github.com/dragoman-hub/dragoman/core"
)

// The codes of error messages that are about the protocol and not about a task.
const (
	codeInvalidMessage  = "INVALID_MESSAGE"
	codeMessageTooLarge = "MESSAGE_TOO_LARGE"
	codeNotRegistered   = "NOT_REGISTERED"
	codeRegisterTimeout = "REGISTER_TIMEOUT"
	codeDuplicateName   = "DUPLICATE_NAME"
	codeTaskNotHeld     = "TASK_NOT_HELD"
	codeHeartbeatMissed = "HEARTBEAT_MISSED"
	codeRejected        = "REJECTED"
	codeProcessing      = "PROCESSING_ERROR"
	codeCancelled       = "CANCELLED"
	codeRateLimited     = "RATE_LIMITED"
	codeUnsupported     = "UNSUPPORTED"
)

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

// faultCodes is the table back. A code that is in neither table is internal.
var faultCodes = func() map[string]core.Code {
	back := map[string]core.Code{
		codeRejected:             core.CodeOverloaded,
		"NO_AGENTS":              core.CodeUnreachable,
		codeInvalidMessage:       core.CodeInvalid,
		codeMessageTooLarge:      core.CodeTooLarge,
		"AUTH_FAILED":            core.CodeUnauthenticated,
		"AUTHENTICATION_EXPIRED": core.CodeUnauthenticated,
		codeTaskNotHeld:          core.CodeUnknownTask,
		codeDuplicateName:        core.CodeConflict,
		codeProcessing:           core.CodeInternal,
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
}

type errorMsg struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

var errorShape = shape{
	"requestId": nil, "taskId": nil, "executionId": nil, "retryable": nil,
	"error": shape{"code": nil, "message": nil},
}

// end is what a task_error says: that the task failed, or that the agent stopped
// it as it was told to.
func (e taskError) end() core.Body {
	if e.Error.Code == codeCancelled {
		return core.Cancelled{Reason: e.Error.Message}
	}
	return core.Failed{Fault: e.fault()}
}

// fault is the Fault behind a task_error. Without a word on retrying a rejection
// may be retried, anything else as its code says.
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

// foreignError is what a task_error says beyond the Fault. It is kept even when
// there is nothing else, if the agent used a code of its own.
func foreignError(payload json.RawMessage, end core.Body) *core.Foreign {
	f := errorShape.foreign(payload)
	if failed, ok := end.(core.Failed); ok && f == nil && failed.Fault.Peer != "" {
		f = &core.Foreign{Dialect: Dialect}
	}
	return f
}
