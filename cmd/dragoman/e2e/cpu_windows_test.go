package e2e

import (
	"syscall"
	"testing"
	"time"
)

// cpu returns the CPU time that the process has used.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	self, err := syscall.GetCurrentProcess()
	if err != nil {
		b.Fatal(err)
	}
	var created, exited, kernel, user syscall.Filetime
	if err := syscall.GetProcessTimes(self, &created, &exited, &kernel, &user); err != nil {
		b.Fatal(err)
	}
	used := func(t syscall.Filetime) time.Duration {
		return 100 * time.Duration(int64(t.HighDateTime)<<32|int64(t.LowDateTime))
	}
	return used(kernel) + used(user)
}
