package ws

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
)

// writeBytes is the size of one write. What was written grows with each, while a peer reads a long message slowly.
const writeBytes = 64 << 10

// wire is the byte stream under a WebSocket. The library reads all of it, and writes control frames, each with one
// Write. Messages are written by send, many frames at once. wire also records what the library does not
// report: what has arrived, and whether the socket failed.
type wire struct {
	rwc    io.ReadWriteCloser
	in     io.Reader // rwc, behind what was read of it before
	client bool      // frames are masked

	received atomic.Int64 // bytes
	written  atomic.Int64 // bytes
	failed   atomic.Bool  // the socket itself returned an error
	closed   atomic.Bool  // it was closed at this end

	writing chan struct{} // has a token during writes to the socket
	over    bool          // a close frame was written, which is the last one

	keepMu sync.Mutex // never held while waiting
	kept   [2][]byte  // a ping and a pong that came during a write, after which they are written
}

func newWire(rwc io.ReadWriteCloser, client bool) *wire {
	return &wire{rwc: rwc, client: client, in: rwc, writing: make(chan struct{}, 1)}
}

// Read implements io.Reader. A WebSocket ends with a close frame, so the end of the stream is
// always a loss. It must not be io.EOF, which the library takes for the end of a message:
// a part of a message would be returned as the whole.
func (w *wire) Read(p []byte) (int, error) {
	n, err := w.in.Read(p)
	w.received.Add(int64(n))
	if err != nil {
		w.failed.Store(true)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
	}
	return n, err
}

// Write implements io.Writer for a control frame. The library may write it in the goroutine that reads, which must
// not wait for a peer that reads a message slowly: during another write the frame is kept until after it, and an
// older one of its kind is dropped. A close frame waits, since the library closes the socket next.
func (w *wire) Write(frame []byte) (int, error) {
	n, isClose := len(frame), frame[0] == finClose
	if isClose {
		w.writing <- struct{}{}
		frame = checkedClose(frame)
	} else if !w.beginOrKeep(frame) {
		return n, nil
	}
	defer w.endWrite()
	if err := w.push(frame); err != nil {
		return 0, err
	}
	w.over = isClose
	return n, nil
}

// beginOrKeep begins a write, or keeps a frame for the end of the one that runs.
func (w *wire) beginOrKeep(frame []byte) (begun bool) {
	w.keepMu.Lock()
	defer w.keepMu.Unlock()
	select {
	case w.writing <- struct{}{}:
		return true
	default:
		w.kept[frame[0]-finPing] = bytes.Clone(frame)
		return false
	}
}

// endWrite writes the frames that were kept, and ends the write once there is none.
func (w *wire) endWrite() {
	for {
		w.keepMu.Lock()
		kept := slices.Concat(w.kept[0], w.kept[1])
		if w.kept = [2][]byte{}; len(kept) == 0 {
			<-w.writing
		}
		w.keepMu.Unlock()
		if len(kept) == 0 {
			return
		}
		_ = w.push(kept) // an error is found by the next one who reads or writes
	}
}

// send writes messages, each as a frame of text.
func (w *wire) send(ms [][]byte) error {
	w.writing <- struct{}{}
	defer w.endWrite()
	size := 0
	for _, m := range ms {
		size += headerBytes + len(m)
	}
	buf := borrow(min(size, writeBytes))
	defer giveBack(buf)
	for _, m := range ms {
		if err := w.appendMessage(buf, m); err != nil {
			return err
		}
	}
	return w.flush(buf)
}

// appendMessage appends a message to buf, which it writes whenever it is full.
func (w *wire) appendMessage(buf *[]byte, m []byte) error {
	if len(*buf) > 0 && len(*buf)+headerBytes+len(m) > writeBytes {
		if err := w.flush(buf); err != nil {
			return err
		}
	}
	b, key := appendHeader(*buf, finText, len(m), w.client)
	for offset := 0; ; {
		from := len(b)
		b = append(b, m[offset:min(len(m), offset+writeBytes-from)]...)
		if w.client {
			xor(b[from:], key, offset)
		}
		*buf = b
		if offset += len(b) - from; offset == len(m) {
			return nil
		}
		if err := w.flush(buf); err != nil {
			return err
		}
		b = *buf
	}
}

// flush writes buf and empties it.
func (w *wire) flush(buf *[]byte) error {
	err := w.push(*buf)
	*buf = (*buf)[:0]
	return err
}

func (w *wire) push(p []byte) error {
	if w.over {
		return net.ErrClosed
	}
	n, err := w.rwc.Write(p)
	w.written.Add(int64(n))
	if err != nil {
		w.failed.Store(true)
	}
	return err
}

// Close implements io.Closer. It wakes Read and Write.
func (w *wire) Close() error {
	w.closed.Store(true)
	return w.rwc.Close()
}
