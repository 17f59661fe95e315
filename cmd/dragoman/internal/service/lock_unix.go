//go:build unix

package service

import (
	"os"
	"syscall"
)

// lock locks a file until it is closed or the process ends, and returns an error at once if another
// has locked it.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
