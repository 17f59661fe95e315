package stdio

import (
	"errors"
	"syscall"
)

// brokenPipe reports whether a write failed because nobody reads any more.
func brokenPipe(err error) bool {
	const noData = syscall.Errno(232) // ERROR_NO_DATA: the pipe is being closed
	return errors.Is(err, syscall.ERROR_BROKEN_PIPE) || errors.Is(err, noData)
}
