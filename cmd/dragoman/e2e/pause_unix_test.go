//go:build unix

package e2e

import (
	"os"
	"syscall"
)

// pause makes a process stand still, and resume lets it go on.
var pause, resume os.Signal = syscall.SIGSTOP, syscall.SIGCONT
