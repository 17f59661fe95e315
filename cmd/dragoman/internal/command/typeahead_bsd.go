//go:build !linux && !windows

package command

import (
	"os"

	"golang.org/x/sys/unix"
)

// discardTyped throws away what was typed at a terminal and not read yet.
func discardTyped(in *os.File) {
	const fread = 1 // of <sys/file.h>
	_ = unix.IoctlSetPointerInt(int(in.Fd()), unix.TIOCFLUSH, fread)
}
