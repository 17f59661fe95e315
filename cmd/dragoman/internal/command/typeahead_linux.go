package command

import (
	"os"

	"golang.org/x/sys/unix"
)

// discardTyped throws away what was typed at a terminal and not read yet.
func discardTyped(in *os.File) { _ = unix.IoctlSetInt(int(in.Fd()), unix.TCFLSH, unix.TCIFLUSH) }
