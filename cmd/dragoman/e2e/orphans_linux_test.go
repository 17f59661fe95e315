package e2e

import "syscall"

// A test binary that is killed takes its programs with it.
func init() { ofProgram = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
