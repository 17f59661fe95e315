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
	// corkBytes is up to how many bytes of frames are gathered for one write.
	corkBytes = 64 << 10
	// pongRounds is how many pings that came in during a write are answered one by
	// one; of a flood only the last counts.
	pongRounds = 8
)

// wire is the byte stream under a WebSocket. The library above it writes frame by
// frame; while corked, wire gathers frames and writes them at once. It also knows
// what the library does not tell: whether bytes came in, whether the socket
// failed, and it answers pings when the library would have to wait.
type wire struct {
	rwc    io.ReadWriteCloser
	client bool // frames are to be masked

	in       intake
	received atomic.Int64 // bytes
	failed   atomic.Bool  // the socket itself returned an error
	closed   atomic.Bool  // somebody on this side closed it

	mu     sync.Mutex // held for the time of a write to the socket
	corked bool
	buf    *[]byte

	pongMu  sync.Mutex // held for no time
	sending bool       // between cork and the end of uncork
	pong    []byte     // what the pong says that is to be sent after that; nil if none is
}

func newWire(rwc io.ReadWriteCloser, client bool) *wire { return &wire{rwc: rwc, client: client} }

// Read implements io.Reader. A WebSocket ends with a close frame, so that the end
// of the stream is always a loss. It must not read as io.EOF: the library takes
// that for the end of a message, and half a message for a whole one.
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
	if !w.corked {
		return w.writeLocked(p)
	}
	if len(*w.buf)+len(p) > corkBytes {
		if err := w.flushLocked(); err != nil {
			return 0, err
		}
		if len(p) >= corkBytes/2 {
			return w.writeLocked(p)
		}
	}
	*w.buf = append(room(*w.buf, len(p)), p...)
	return len(p), nil
}

// Close implements io.Closer. It wakes a Read and a Write under way.
func (w *wire) Close() error {
	w.closed.Store(true)
	return w.rwc.Close()
}

// cork has what is written gathered until uncork.
func (w *wire) cork() {
	w.pongMu.Lock()
	w.sending = true
	w.pongMu.Unlock()

	w.mu.Lock()
	defer w.mu.Unlock()
	w.corked, w.buf = true, borrow()
}

// uncork writes what was gathered. Then, at what is the end of a frame for
// certain, it answers the pings that came in meanwhile.
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

// takePong returns what the next pong says, or nil if there is none to send; then
// the library may answer pings again.
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

// pinged reports whether the library is to answer a ping. While a write is under
// way it must not: it would wait for the peer in the goroutine that reads.
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

func (w *wire) writeLocked(p []byte) (int, error) {
	n, err := w.rwc.Write(p)
	if err != nil {
		w.failed.Store(true)
	}
	return n, err
}

// maxPong is the largest pong frame.
const maxPong = 2 + 4 + 125

// appendPong appends a pong frame. A client has to mask; a mask of zeros does.
func appendPong(b, payload []byte, client bool) []byte {
	const finPong, masked = 0x8A, 0x80
	if client {
		b = append(b, finPong, masked|byte(len(payload)))
		b = binary.BigEndian.AppendUint32(b, 0)
	} else {
		b = append(b, finPong, byte(len(payload)))
	}
	return append(b, payload...)
}
