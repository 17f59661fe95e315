package stdio

import (
	"io"
	"os"
	"sync"
	"time"
)

// Files returns a Conn that reads in and writes out and owns both. They need not be pollable:
// see the package comment.
func Files(in, out *os.File, opts Options) *Conn {
	var r io.ReadCloser = in
	var w io.WriteCloser = out
	if !pollable(in) {
		r = &blockingReader{f: in, closed: make(chan struct{})}
	}
	if !pollable(out) {
		w = &blockingWriter{f: out, closed: make(chan struct{})}
	}
	return New(r, w, opts)
}

// pollable reports whether closing f wakes its readers and writers.
func pollable(f *os.File) bool { return f.SetDeadline(time.Time{}) == nil }

// blockingReader reads a file that cannot be woken, in a goroutine that starts with the first
// Read and ends with the file.
type blockingReader struct {
	f       io.ReadCloser
	start   sync.Once
	close   sync.Once
	closed  chan struct{}
	results chan readResult
	current readResult // the data that was not returned yet
}

// readResult is the result of one read. next requests another.
type readResult struct {
	b    []byte
	err  error
	next chan<- struct{}
}

// Read implements io.Reader.
func (r *blockingReader) Read(p []byte) (int, error) {
	r.start.Do(func() {
		r.results = make(chan readResult)
		go r.run()
	})
	if len(r.current.b) == 0 {
		if r.current.err != nil {
			return 0, r.current.err
		}
		if r.current.next != nil {
			r.current.next <- struct{}{}
			r.current.next = nil
		}
		select {
		case r.current = <-r.results:
		case <-r.closed:
			return 0, os.ErrClosed
		}
	}
	n := copy(p, r.current.b)
	r.current.b = r.current.b[n:]
	if len(r.current.b) == 0 {
		return n, r.current.err
	}
	return n, nil
}

func (r *blockingReader) run() {
	b := make([]byte, readBytes)
	next := make(chan struct{}, 1)
	for {
		n, err := r.f.Read(b)
		select {
		case r.results <- readResult{b[:n], err, next}:
		case <-r.closed:
			return
		}
		if err != nil {
			return
		}
		select {
		case <-next:
		case <-r.closed:
			return
		}
	}
}

// Close implements io.Closer. The file is closed when its read ends.
func (r *blockingReader) Close() error {
	r.close.Do(func() { close(r.closed) })
	return r.f.Close()
}

// blockingWriter writes a file that cannot be woken, in a goroutine that starts with the first
// Write.
type blockingWriter struct {
	f      io.WriteCloser
	start  sync.Once
	close  sync.Once
	closed chan struct{}
	writes chan []byte
	ends   chan error
	buf    []byte // a copy of what is being written
}

// Write implements io.Writer.
func (w *blockingWriter) Write(p []byte) (int, error) {
	w.start.Do(func() {
		w.writes, w.ends = make(chan []byte), make(chan error, 1)
		go w.run()
	})
	w.buf = append(w.buf[:0], p...)
	select {
	case w.writes <- w.buf:
	case <-w.closed:
		return 0, os.ErrClosed
	}
	select {
	case err := <-w.ends:
		if cap(w.buf) > 2*joinBytes {
			w.buf = nil
		}
		if err != nil {
			return 0, err
		}
		return len(p), nil
	case <-w.closed:
		w.buf = nil // the goroutine still uses it
		return 0, os.ErrClosed
	}
}

func (w *blockingWriter) run() {
	for {
		select {
		case b := <-w.writes:
			_, err := w.f.Write(b)
			w.ends <- err
		case <-w.closed:
			return
		}
	}
}

// Close implements io.Closer. The file is closed when its write ends.
func (w *blockingWriter) Close() error {
	w.close.Do(func() { close(w.closed) })
	return w.f.Close()
}
