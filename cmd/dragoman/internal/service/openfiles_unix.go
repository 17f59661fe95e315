//go:build unix

package service

import "syscall"

// openFiles returns how many files this process may open. Go raised the soft limit to the hard
// one before main.
func openFiles() (int, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, err
	}
	return int(min(limit.Cur, 1<<30)), nil
}
