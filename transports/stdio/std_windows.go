package stdio

import "os"

// Std returns a Conn over stdin and stdout of this process, which Close leaves open: to close one
// of them would wait for what reads it. Nothing else may use them meanwhile.
func Std(opts Options) (*Conn, error) {
	in := newBlockingReader(lent{os.Stdin})
	out := &blockingWriter{f: lent{os.Stdout}, closed: make(chan struct{})}
	return New(in, out, opts), nil
}

// lent is a file that stays open.
type lent struct{ *os.File }

// Close implements io.Closer.
func (lent) Close() error { return nil }
