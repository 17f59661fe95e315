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
		r = newBlockingReader(in)
	}
	if !pollable(out) {
		w = &blockingWriter{f: out, closed: make(chan struct{})}
	}
	return New(r, w, opts)
}

// pollable reports whether closing f wakes its readers and writers.
func pollable(f *os.File) bool { return f.SetDeadline(time.Time{}) == nil }

// blockingReader reads a file that cannot be woken, in a goroutine that ends with the file.
type blockingReader struct {
	*io.PipeReader
	f io.Closer
}

func newBlockingReader(f io.ReadCloser) blockingReader {
	r, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, f)
		w.CloseWithError(err)
	}()
	return blockingReader{r, f}
}

// Close implements io.Closer. The file is closed when its read ends.
func (r blockingReader) Close() error {
	_ = r.PipeReader.Close()
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
