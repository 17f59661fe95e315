package ws

import (
	"io"
	"sync"
)

const (
	// readerBytes and writerBytes are the buffers that every connection keeps, idle
	// or not. They are small because a busy connection borrows a large one.
	readerBytes = 512
	writerBytes = 256
	// busyReads is after how many reads in a row that filled the small buffer more
	// must be waiting than fits in it.
	busyReads = 2
)

// intake reads from a socket for a small buffer above it. It goes straight
// through until many small frames come in; then it takes in as much as there is
// at once, with a borrowed buffer that goes back when the socket has been emptied.
type intake struct {
	full int     // reads in a row that filled the small buffer
	buf  *[]byte // borrowed; nil if none is
	from int     // what of buf has been passed on
}

// early has p, which was read before, passed on first.
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
			i.emptied()
			return 0, err
		}
	}
	n := copy(p, (*i.buf)[i.from:])
	i.from += n
	if i.from == len(*i.buf) && i.from < cap(*i.buf) {
		i.emptied()
	}
	return n, nil
}

// emptied gives the borrowed buffer back.
func (i *intake) emptied() {
	giveBack(i.buf)
	*i = intake{}
}

// scratch lends buffers for the time of one message.
var scratch = sync.Pool{New: func() any {
	b := make([]byte, 0, 4<<10)
	return &b
}}

// room returns b with room for n more bytes. It doubles, and stops at what can be
// lent again as long as that will do.
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

// giveBack returns a buffer, unless it has grown too large to keep.
func giveBack(b *[]byte) {
	if cap(*b) <= corkBytes {
		*b = (*b)[:0]
		scratch.Put(b)
	}
}
