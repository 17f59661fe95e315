//go:build unix

package stdio_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/stdio"
)

// modeVariable is the environment variable that makes the test binary a child process.
const modeVariable = "STDIO_TEST_ROLE"

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeVariable); mode != "" {
		child(mode)
		return
	}
	goleak.VerifyTestMain(m)
}

type conn = link.Conn[[]byte, []byte]

func receive(c conn) (string, error) {
	m, err := c.Receive(context.Background())
	return string(m), err
}

func rejectOf(err error) link.Reject {
	var r *link.Reject
	if errors.As(err, &r) {
		return *r
	}
	return link.Reject{}
}

// pipes returns a connection and the files at its other end.
func pipes(tb testing.TB, opts stdio.Options) (c *stdio.Conn, in, out *os.File) {
	tb.Helper()
	r, in, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, w, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	c = stdio.New(r, w, opts)
	tb.Cleanup(func() {
		_ = c.Close(link.Reason{})
		_ = in.Close()
		_ = out.Close()
	})
	return c, in, out
}
