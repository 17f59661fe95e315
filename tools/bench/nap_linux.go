package main

import (
	"syscall"
	"time"
)

// nap sleeps for about d, to some tenths of a millisecond. It may be woken early.
func nap(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil)
}
