package wire

import (
	"errors"

	"github.com/dragoman-hub/dragoman/core"
)

// AsError says why the hub refuses something in the words of ACP, and what to do
// instead.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	f := core.AsFault(err)
	e = ErrorOf(f)
	e.Message += advice[f.Code]
	return e
}

// advice is what a peer of ACP can do where the words of the hub, which are for every
// dialect, do not say.
var advice = map[core.Code]string{
	core.CodeUnknownAgent:  "; send a discover without to for a list",
	core.CodeUnknownDomain: "; send a discover without to for those that are served, or say in to whom to ask",
}
