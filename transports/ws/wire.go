package ws

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

const (
	// corkBytes is how many bytes of frames are collected for one write.
	corkBytes = 64 << 10
	// pongRounds is how many pings that arrive during a write are answered one by one; of
	// more, only the last is answered.
	pongRounds = 8
)

// wire is the byte stream under a WebSocket. The library writes frame by frame; while
// corked, wire collects frames and writes them at once. It also records what the library
// does not report: whether bytes arrived and whether the socket failed. It answers pings
// when the library would have to wait, and closes whose reason is not UTF-8.
type wire struct {
	rwc    io.ReadWriteCloser
	client bool // frames must be masked

	in       intake
	received atomic.Int64 // bytes
	written  atomic.Int64 // bytes
	failed   atomic.Bool  // the socket itself returned an error
	closed   atomic.Bool  // it was closed at this end

	mu     sync.Mutex // held during a write to the socket
	out    outgoing
	corked bool
	buf    *[]byte

	pongMu  sync.Mutex // never held while waiting
	sending bool       // between cork and the end of uncork
	pong    []byte     // payload of the pong to send after that; nil for none
}

func newWire(rwc io.ReadWriteCloser, client bool) *wire { return &wire{rwc: rwc, client: client} }

// Read implements io.Reader. A WebSocket ends with a close frame, so the end of the stream is
// always a loss. It must not be io.EOF, which the library takes for the end of a message:
// a part of a message would be returned as the whole.
func (w *wire) Read(p []byte) (int, error) {
	n, err := w.in.read(w.rwc, p)
	w.received.Add(int64(n))
	if err != nil {
		w.failed.Store(true)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
	}
	return n, err
}

// Write implements io.Writer.
func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(p)
	if err := w.takeLocked(w.out.checked(p)); err != nil {
		return 0, err
	}
	return n, nil
}

// takeLocked writes p, or collects it.
func (w *wire) takeLocked(p []byte) error {
	if !w.corked {
		_, err := w.writeLocked(p)
		return err
	}
	if len(*w.buf)+len(p) > corkBytes {
		if err := w.flushLocked(); err != nil {
			return err
		}
		if len(p) >= corkBytes/2 {
			_, err := w.writeLocked(p)
			return err
		}
	}
	*w.buf = append(room(*w.buf, len(p)), p...)
	return nil
}

// Close implements io.Closer. It wakes Read and Write.
func (w *wire) Close() error {
	w.closed.Store(true)
	return w.rwc.Close()
}

// cork collects what is written until uncork.
func (w *wire) cork() {
	w.pongMu.Lock()
	w.sending = true
	w.pongMu.Unlock()

	w.mu.Lock()
	defer w.mu.Unlock()
	w.corked, w.buf = true, borrow()
}

// uncork writes what was collected. Then, between frames, it answers the pings that arrived
// meanwhile.
func (w *wire) uncork() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.flushLocked()
	for range pongRounds {
		pong := w.takePong(err)
		if pong == nil {
			break
		}
		*w.buf = appendPong(room(*w.buf, maxPong), pong, w.client)
		err = w.flushLocked()
	}
	w.endSending()
	giveBack(w.buf)
	w.corked, w.buf = false, nil
	return err
}

// takePong returns the payload of the next pong. If it returns nil, there is none, and the
// library may answer pings again.
func (w *wire) takePong(err error) []byte {
	w.pongMu.Lock()
	defer w.pongMu.Unlock()
	pong := w.pong
	w.pong = nil
	if err != nil {
		pong = nil
	}
	if pong == nil {
		w.sending = false
	}
	return pong
}

func (w *wire) endSending() {
	w.pongMu.Lock()
	defer w.pongMu.Unlock()
	w.sending = false
}

// pinged reports whether the library may answer a ping. During a write it must not: it would
// wait for the peer in the goroutine that reads.
func (w *wire) pinged(_ context.Context, payload []byte) bool {
	w.pongMu.Lock()
	defer w.pongMu.Unlock()
	if w.sending {
		w.pong = append(make([]byte, 0, len(payload)), payload...)
	}
	return !w.sending
}

func (w *wire) flushLocked() error {
	if len(*w.buf) == 0 {
		return nil
	}
	_, err := w.writeLocked(*w.buf)
	*w.buf = (*w.buf)[:0]
	return err
}

// writeLocked writes in pieces, so that written grows while a peer reads a long message slowly.
func (w *wire) writeLocked(p []byte) (n int, err error) {
	for {
		m, err := w.rwc.Write(p[n:min(len(p), n+corkBytes)])
		w.written.Add(int64(m))
		n += m
		if err != nil {
			w.failed.Store(true)
			return n, err
		}
		if n == len(p) {
			return n, nil
		}
	}
}

// maxPong is the size of the largest pong frame.
const maxPong = 2 + 4 + 125

// appendPong appends a pong frame. A client must mask; a mask of zeros is allowed.
func appendPong(b, payload []byte, client bool) []byte {
	const finPong = 0x8A
	if client {
		b = append(b, finPong, masked|byte(len(payload)))
		b = binary.BigEndian.AppendUint32(b, 0)
	} else {
		b = append(b, finPong, byte(len(payload)))
	}
	return append(b, payload...)
}
