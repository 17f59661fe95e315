package render

import (
	"context"
	"sync"
	"sync/atomic"
)

// Frames collects the frames that a connection sends next. They share buffers that are
// reused once the connection has sent their frames: otherwise frames would be most of the
// memory that a prompt costs. The zero Frames is empty. It is not safe for concurrent use.
type Frames struct {
	list [][]byte
	// room is where the next frame goes, after the last one. It is in buf or, if buf is
	// nil, in memory for one large frame.
	room []byte
	buf  *buffer
	ends []end
}

// end records the last frame in a buffer.
type end struct {
	frame int // its index in Frames.list
	buf   *buffer
}

// Sender sends frames in order, as link.Link does. SendThen blocks until there is room. After
// it has returned nil it may still read the frame until it calls sent, which is nil for
// most frames; it never calls sent for a frame that it did not send.
type Sender interface {
	SendThen(ctx context.Context, frame []byte, size int, sent func()) error
}

// spareFrames is the maximum capacity of the list that is kept between batches.
const spareFrames = 256

// add adds the frame, of about size bytes, that fill appends.
func (f *Frames) add(size int, fill func(dst []byte) []byte) {
	if len(f.list) == 0 && f.buf != nil && f.buf.users.Load() == 1 {
		f.room = f.buf.memory // all of its frames were sent
	}
	if cap(f.room)-len(f.room) < size {
		f.makeRoom(size)
	}
	n := len(f.room)
	b := fill(f.room[n:])
	if cap(b) == cap(f.room)-n { // it did not outgrow the room
		f.room = f.room[:n+len(b)]
	}
	if f.list == nil {
		f.list = make([][]byte, 0, 4)
	}
	f.list = append(f.list, b[:len(b):len(b)])
}

// makeRoom gets memory for a frame of about size bytes.
func (f *Frames) makeRoom(size int) {
	if f.buf != nil {
		f.keepBuffer()
		f.buf.release()
		f.buf = nil
	}
	if size > bufferSize {
		f.room = make([]byte, 0, size)
		return
	}
	f.buf = newBuffer()
	f.room = f.buf.memory
}

// keepBuffer registers the last frame in the list as a user of the buffer.
func (f *Frames) keepBuffer() {
	if f.buf != nil && len(f.list) > 0 {
		f.buf.users.Add(1)
		f.ends = append(f.ends, end{len(f.list) - 1, f.buf})
	}
}

// Send sends the frames in order and forgets them. It blocks as the Sender does, and
// reports false if the Sender returns an error.
func (f *Frames) Send(ctx context.Context, to Sender) bool {
	f.keepBuffer()
	ends := f.ends
	for i, b := range f.list {
		var sent func()
		if len(ends) > 0 && ends[0].frame == i {
			sent, ends = ends[0].buf.release, ends[1:]
		}
		if to.SendThen(ctx, b, len(b), sent) != nil {
			return false
		}
	}
	if f.buf == nil {
		f.room = nil // memory of a large frame
	}
	clear(f.list)
	clear(f.ends)
	if f.list, f.ends = f.list[:0], f.ends[:0]; cap(f.list) > spareFrames {
		f.list, f.ends = nil, nil
	}
	return true
}

// bufferSize is the size of a buffer. It holds the frames of a run with one short answer.
const bufferSize = 4 << 10

// buffer is memory for frames.
type buffer struct {
	memory []byte
	// users counts the Frames that write into the buffer and, for each batch in it, the last
	// frame until it was sent. The buffer is free when the count reaches 0. If a frame is
	// never sent, the garbage collector frees its buffer.
	users   atomic.Int32
	release func() // of one user
}

var buffers sync.Pool

// newBuffer returns an empty buffer with one user.
func newBuffer() *buffer {
	b, _ := buffers.Get().(*buffer)
	if b == nil {
		b = &buffer{memory: make([]byte, 0, bufferSize)}
		b.release = func() {
			if b.users.Add(-1) == 0 {
				buffers.Put(b)
			}
		}
	}
	b.users.Store(1)
	return b
}
