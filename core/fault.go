package core

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Code is the kind of a Fault.
type Code string

// The codes of a Fault.
const (
	CodeInvalid         Code = "invalid"
	CodeUnauthenticated Code = "unauthenticated"
	CodeNotAuthorized   Code = "not_authorized"
	CodeUnknownAgent    Code = "unknown_agent"
	CodeUnknownTask     Code = "unknown_task"
	CodeUnreachable     Code = "unreachable"
	CodeUnknownDomain   Code = "unknown_domain"
	CodeUnknownKind     Code = "unknown_kind"
	CodeUnsupported     Code = "unsupported"
	CodeOverloaded      Code = "overloaded"
	CodeRateLimited     Code = "rate_limited"
	CodeTooLarge        Code = "too_large"
	CodeTimeout         Code = "timeout"
	CodeCancelled       Code = "cancelled"
	CodeConflict        Code = "conflict"
	CodeLoop            Code = "loop"
	CodeBudget          Code = "budget"
	CodeInternal        Code = "internal"
)

// Codes returns every code: each dialect has a table from these to its own.
func Codes() []Code {
	return []Code{
		CodeInvalid, CodeUnauthenticated, CodeNotAuthorized, CodeUnknownAgent, CodeUnknownTask, CodeUnreachable, CodeUnknownDomain,
		CodeUnknownKind, CodeUnsupported, CodeOverloaded, CodeRateLimited, CodeTooLarge, CodeTimeout, CodeCancelled,
		CodeConflict, CodeLoop, CodeBudget, CodeInternal,
	}
}

// Fault is an error for peers: its code and message may be shown to any peer, its cause
// never leaves the process.
type Fault struct {
	Code Code `json:"code"`
	// Message says what to do about it, in one line.
	Message string `json:"message"`
	// Retryable says that the same request may succeed later or with another agent.
	Retryable bool `json:"retryable,omitempty"`
	// PeerCode is the code of the source dialect if it has no neutral equivalent, for peers of
	// the same dialect.
	PeerCode string `json:"peer_code,omitempty"`
	// RetryAfter is when to come again, where that is known. An agent that fails with it is passed over until then
	// where a request names others beside it.
	RetryAfter Seconds `json:"retry_after,omitempty"`

	cause error
}

// InternalMessage is the message for peers of an error that is not a Fault.
const InternalMessage = "internal error: see the log of the hub"

// NewFault returns a Fault whose retryability follows from its code.
func NewFault(code Code, format string, args ...any) *Fault {
	f := &Fault{Code: code, Message: fmt.Sprintf(format, args...)}
	switch code {
	case CodeUnreachable, CodeOverloaded, CodeRateLimited, CodeTimeout:
		f.Retryable = true
	}
	return f
}

// Because returns a copy of f with a cause for the log.
func (f *Fault) Because(cause error) *Fault {
	g := *f
	g.cause = cause
	return &g
}

// Seconds is a time from now on that JSON has in whole seconds, rounded up, as HTTP's Retry-After does (RFC 9110,
// section 10.2.3).
type Seconds time.Duration

// Whole returns the number of seconds; 0 for none.
func (s Seconds) Whole() int {
	return int((max(0, time.Duration(s)) + time.Second - 1) / time.Second)
}

// MarshalJSON implements json.Marshaler.
func (s Seconds) MarshalJSON() ([]byte, error) {
	return strconv.AppendInt(nil, int64(s.Whole()), 10), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Seconds) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseUint(string(b), 10, 32)
	if err != nil {
		return NewFault(CodeInvalid, "want whole seconds, got %.40s", b)
	}
	*s = Seconds(time.Duration(n) * time.Second)
	return nil
}

// Error implements error.
func (f *Fault) Error() string { return string(f.Code) + ": " + f.Message }

// PeerMessage is the message without the code. A reader of JSON uses it for a value that
// breaks the rules of its type.
func (f *Fault) PeerMessage() string { return f.Message }

// Unwrap returns the hidden cause.
func (f *Fault) Unwrap() error { return f.cause }

// Is makes errors.Is compare only the code with a Fault that has no message.
func (f *Fault) Is(target error) bool {
	g, ok := target.(*Fault)
	return ok && g.Code == f.Code && g.Message == ""
}

func (f *Fault) size() int {
	if f == nil {
		return 0
	}
	return 80 + len(f.Message) + len(f.PeerCode)
}

// AsFault returns the Fault that err is or wraps. A context's end becomes
// cancelled or timeout, anything else internal with a fixed public message and
// err as its hidden cause. It returns nil for nil.
func AsFault(err error) *Fault {
	if err == nil {
		return nil
	}
	var f *Fault
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, context.DeadlineExceeded):
		return NewFault(CodeTimeout, "the deadline passed").Because(err)
	case errors.Is(err, context.Canceled):
		return NewFault(CodeCancelled, "the caller stopped waiting").Because(err)
	}
	return NewFault(CodeInternal, InternalMessage).Because(err)
}
