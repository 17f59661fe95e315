package service

import (
	"os"

	"golang.org/x/sys/windows"
)

// lock locks a file until it is closed or the process ends, and returns an error at once if another
// has locked it.
func lock(f *os.File) error {
	const first, all = 0, ^uint32(0)
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, first, all, all, &windows.Overlapped{})
}
