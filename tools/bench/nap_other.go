//go:build !linux

package main

import "time"

// nap sleeps for d, to a millisecond or two.
func nap(d time.Duration) { time.Sleep(d) }
