package ws

import (
	"slices"
	"sync"
)

// readerBytes and controlBytes are the sizes of the library's buffers, which every connection has. A larger one to
// read costs memory and saves no time; control frames have at most 131 bytes.
const (
	readerBytes  = 1024
	controlBytes = 256
)

// scratch is a pool of buffers of at most writeBytes, for one message or one write each.
var scratch = sync.Pool{New: func() any {
	b := make([]byte, 0, 4<<10)
	return &b
}}

// borrow returns an empty buffer of at least n bytes.
func borrow(n int) *[]byte {
	b := scratch.Get().(*[]byte)
	*b = slices.Grow(*b, n)
	return b
}

// giveBack returns a buffer to the pool, unless it has become too large.
func giveBack(b *[]byte) {
	if cap(*b) <= writeBytes {
		*b = (*b)[:0]
		scratch.Put(b)
	}
}
