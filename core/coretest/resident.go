package coretest

import "runtime"

// Resident returns the memory of live objects and goroutine stacks in bytes, after a garbage
// collection. The difference of two calls is what the work between them keeps.
func Resident() int64 {
	var m runtime.MemStats
	// Twice, since finalizers and pools release some memory only at the second.
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
