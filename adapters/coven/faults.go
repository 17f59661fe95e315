package coven

import (
	"slices"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
)

// Name is the name of the dialect: on cards, in counters, in Foreign.
const Name = "coven"

// The texts that existing agents know (specification, section RegisterAgent; the
// others are those of the existing gateway).
const (
	textRegisterFirst = "first message must be RegisterAgent"
	textIDRequired    = "agent_id is required"
	textToolNotFound  = "tool not found"
	textDuplicateCall = "duplicate request ID"
)

// statuses are the gRPC codes that an agent is turned away with. Coven has no
// other codes: the errors of requests and tools are texts.
var statuses = map[core.Code]codes.Code{
	core.CodeInvalid:         codes.InvalidArgument,
	core.CodeUnauthenticated: codes.Unauthenticated,
	core.CodeNotAuthorized:   codes.PermissionDenied,
	core.CodeUnknownAgent:    codes.NotFound,
	core.CodeUnknownTask:     codes.NotFound,
	core.CodeUnreachable:     codes.Unavailable,
	core.CodeUnknownDomain:   codes.NotFound,
	core.CodeUnknownKind:     codes.Unimplemented,
	core.CodeUnsupported:     codes.Unimplemented,
	core.CodeOverloaded:      codes.ResourceExhausted,
	core.CodeRateLimited:     codes.ResourceExhausted,
	core.CodeTooLarge:        codes.ResourceExhausted,
	core.CodeTimeout:         codes.DeadlineExceeded,
	core.CodeCancelled:       codes.Canceled,
	core.CodeConflict:        codes.AlreadyExists,
	core.CodeLoop:            codes.FailedPrecondition,
	core.CodeBudget:          codes.ResourceExhausted,
	core.CodeInternal:        codes.Internal,
}

// faultCodes are what those statuses mean to an agent.
var faultCodes = map[codes.Code]core.Code{
	codes.InvalidArgument:    core.CodeInvalid,
	codes.Unauthenticated:    core.CodeUnauthenticated,
	codes.PermissionDenied:   core.CodeNotAuthorized,
	codes.NotFound:           core.CodeUnknownAgent,
	codes.Unavailable:        core.CodeUnreachable,
	codes.Unimplemented:      core.CodeUnsupported,
	codes.ResourceExhausted:  core.CodeOverloaded,
	codes.DeadlineExceeded:   core.CodeTimeout,
	codes.Canceled:           core.CodeCancelled,
	codes.AlreadyExists:      core.CodeConflict,
	codes.FailedPrecondition: core.CodeLoop,
	codes.Internal:           core.CodeInternal,
}

// CodeOf returns the code of the fault for which a hub ends a stream with the status;
// false if there is none.
func CodeOf(status codes.Code) (core.Code, bool) {
	code, ok := faultCodes[status]
	return code, ok
}

// status is the reason to end a stream with a gRPC status: the transport takes
// the code as it is.
func status(code codes.Code, text string) *link.Reason {
	cause := link.Protocol
	switch code {
	case codes.Internal:
		cause = link.Internal
	case codes.Unauthenticated, codes.PermissionDenied:
		cause = link.Unauthorized
	case codes.ResourceExhausted:
		cause = link.Overloaded
	case codes.Unavailable:
		cause = link.ShuttingDown
	case codes.DeadlineExceeded:
		cause = link.Unresponsive
	}
	return &link.Reason{Cause: cause, Code: int(code), Text: text}
}

// statusOf is the reason to end a stream because of err.
func statusOf(err error) *link.Reason {
	f := core.AsFault(err)
	return status(statuses[f.Code], f.Message)
}

// FaultText is a fault where Coven has only a text: its code, a colon, its message.
func FaultText(f *core.Fault) string { return f.Error() }

// faultOf is the inverse of FaultText. A text that does not begin with a code is
// the message of an internal fault.
func faultOf(text string) *core.Fault {
	switch text {
	case "":
		return core.NewFault(core.CodeInternal, Unexplained)
	case textToolNotFound:
		return core.NewFault(core.CodeUnsupported, textToolNotFound)
	case textDuplicateCall:
		return core.NewFault(core.CodeConflict, textDuplicateCall)
	case textPackGone:
		return core.NewFault(core.CodeUnreachable, textPackGone)
	case textPackSlow:
		return core.NewFault(core.CodeTimeout, textPackSlow)
	}
	if strings.HasPrefix(text, prefixInvalid) {
		return core.NewFault(core.CodeInvalid, "%s", text)
	}
	code, message, ok := strings.Cut(text, ": ")
	if ok && slices.Contains(core.Codes(), core.Code(code)) {
		return core.NewFault(core.Code(code), "%s", message)
	}
	return core.NewFault(core.CodeInternal, "%s", text)
}
