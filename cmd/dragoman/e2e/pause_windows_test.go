package e2e

import (
	"os"
	"syscall"
)

// pause and resume are SIGSTOP and SIGCONT. Windows has neither: to send one is an error.
var pause, resume os.Signal = syscall.Signal(19), syscall.Signal(18)
