package coretest

import "runtime"

// Resident returns the bytes that are in use by live objects and by the stacks of
// goroutines, after a collection. Two calls with work between them tell what the
// work keeps.
func Resident() int64 {
	var m runtime.MemStats
	// Twice, for what finalizers and pools let go only at the second.
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
