package wire

import (
	"slices"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
)

// Error texts that existing agents match (specification, section RegisterAgent, and
// the existing gateway).
const (
	TextToolNotFound  = "tool not found"
	TextDuplicateCall = "duplicate request ID"
	// PrefixInvalidInput begins the error of a call whose input is not valid.
	PrefixInvalidInput = "invalid input: "

	textPackGone = "pack disconnected"
	textPackSlow = "context deadline exceeded"
)

// statuses are the gRPC codes of faults that end a stream or a call. The errors of
// requests and tools are texts.
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

// faultCodes is the inverse of statuses, one code for each.
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

// StatusOf returns the gRPC status of a fault with the code.
func StatusOf(code core.Code) codes.Code { return statuses[code] }

// CodeOf returns the fault code of a status with which a hub ends a stream; false if
// there is none.
func CodeOf(status codes.Code) (core.Code, bool) {
	code, ok := faultCodes[status]
	return code, ok
}

// Reason returns the reason to end a stream with a gRPC status, which the transport
// sends unchanged.
func Reason(code codes.Code, text string) *link.Reason {
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

// ReasonOf returns the reason to end a stream because of err.
func ReasonOf(err error) *link.Reason {
	f := core.AsFault(err)
	return Reason(statuses[f.Code], f.Message)
}

// FaultText returns a fault as the text "<code>: <message>".
func FaultText(f *core.Fault) string { return f.Error() }

// FaultOf is the inverse of [FaultText]. A text that does not begin with a code is the
// message of an internal fault.
func FaultOf(text string) *core.Fault {
	switch text {
	case "":
		return core.NewFault(core.CodeInternal, Unexplained)
	case TextToolNotFound:
		return core.NewFault(core.CodeUnsupported, TextToolNotFound)
	case TextDuplicateCall:
		return core.NewFault(core.CodeConflict, TextDuplicateCall)
	case textPackGone:
		return core.NewFault(core.CodeUnreachable, textPackGone)
	case textPackSlow:
		return core.NewFault(core.CodeTimeout, textPackSlow)
	}
	if strings.HasPrefix(text, PrefixInvalidInput) {
		return core.NewFault(core.CodeInvalid, "%s", text)
	}
	code, message, ok := strings.Cut(text, ": ")
	if ok && slices.Contains(core.Codes(), core.Code(code)) {
		return core.NewFault(core.Code(code), "%s", message)
	}
	return core.NewFault(core.CodeInternal, "%s", text)
}
