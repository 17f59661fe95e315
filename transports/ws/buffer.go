package ws

import (
	"io"
	"sync"
)

const (
	// readerBytes and writerBytes are the sizes of the buffers of every connection. They are
	// small because a busy connection borrows a large one.
	readerBytes = 512
	writerBytes = 256
	// busyReads is the number of consecutive reads that fill the small buffer after which
	// a connection counts as busy.
	busyReads = 2
)

// intake is the reader between a socket and a small buffer. It passes reads through until
// many small frames arrive; then it reads as much as there is into a borrowed buffer, which
// it returns when the socket is empty.
type intake struct {
	full int     // consecutive reads that filled the small buffer
	buf  *[]byte // borrowed, or nil
	from int     // how much of buf was passed on
}

// early passes on p, which was read before, first.
func (i *intake) early(p []byte) {
	if len(p) > 0 {
		i.buf = borrow()
		*i.buf = append(room(*i.buf, len(p)), p...)
	}
}

func (i *intake) read(r io.Reader, p []byte) (int, error) {
	if i.buf == nil && (len(p) > readerBytes || i.full < busyReads) {
		n, err := r.Read(p)
		if i.full++; n < readerBytes || len(p) > readerBytes {
			i.full = 0
		}
		return n, err
	}
	if i.buf == nil {
		i.buf = borrow()
		*i.buf = room(*i.buf, corkBytes)
	}
	if i.from == len(*i.buf) {
		n, err := r.Read((*i.buf)[:cap(*i.buf)])
		*i.buf, i.from = (*i.buf)[:n], 0
		if err != nil {
			i.returnBuffer()
			return 0, err
		}
	}
	n := copy(p, (*i.buf)[i.from:])
	i.from += n
	if i.from == len(*i.buf) && i.from < cap(*i.buf) {
		i.returnBuffer()
	}
	return n, nil
}

// returnBuffer returns the borrowed buffer.
func (i *intake) returnBuffer() {
	giveBack(i.buf)
	*i = intake{}
}

// scratch is a pool of buffers for one message each.
var scratch = sync.Pool{New: func() any {
	b := make([]byte, 0, 4<<10)
	return &b
}}

// room returns b with capacity for n more bytes. It doubles the capacity, but not beyond what
// the pool takes back unless n needs it.
func room(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	size := max(2*cap(b), len(b)+n)
	if len(b)+n <= corkBytes {
		size = min(size, corkBytes)
	}
	return append(make([]byte, 0, size), b...)
}

func borrow() *[]byte { return scratch.Get().(*[]byte) }

// giveBack returns a buffer to the pool, unless it is too large.
func giveBack(b *[]byte) {
	if cap(*b) <= corkBytes {
		*b = (*b)[:0]
		scratch.Put(b)
	}
}
