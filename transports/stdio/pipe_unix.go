//go:build unix

package stdio

import (
	"errors"
	"syscall"
)

// brokenPipe reports whether a write failed because nobody reads any more.
func brokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
