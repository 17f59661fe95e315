//go:build unix

package supervisor_test

import "syscall"

// alive reports whether there is a process with an id.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }
