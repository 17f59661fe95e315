package link_test

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type (
	conn     = link.Conn[[]byte, []byte]
	bytes    = link.Link[[]byte, []byte]
	receive  = func(context.Context, []byte) error
	rejected = func(context.Context, *link.Reject) error
)

// pipe returns the hub's end and the peer's end of a connection that buffers that many
// messages each way.
func pipe(messages int) (hub, peer *coretest.End[[]byte, []byte]) {
	return coretest.Pipe[[]byte, []byte](messages)
}

// running is a link whose Run is under way.
type running struct {
	*bytes
	t      *testing.T
	cancel context.CancelCauseFunc
	ended  chan link.Reason
}

// run starts a link over c. The callbacks may be nil.
func run(t *testing.T, c conn, opts link.Options, rcv receive, rej rejected) *running {
	t.Helper()
	if rcv == nil {
		rcv = func(context.Context, []byte) error { return nil }
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	r := &running{bytes: link.New(c, opts), t: t, cancel: cancel, ended: make(chan link.Reason, 1)}
	go func() { r.ended <- r.Run(ctx, rcv, rej) }()
	t.Cleanup(func() { cancel(nil) })
	return r
}

// wait returns the reason that Run returned.
func (r *running) wait() link.Reason {
	r.t.Helper()
	got := <-r.ended
	if kept := r.Reason(); kept != got {
		r.t.Errorf("Reason after Run: got %v, want what Run returned: %v", &kept, &got)
	}
	return got
}

// send queues number n, of the given size, and fails the test if that fails.
func (r *running) send(n, size int) {
	r.t.Helper()
	if err := r.Send(context.Background(), number(n), size); err != nil {
		r.t.Errorf("Send of message %d: got %v, want it queued", n, err)
	}
}

// elapse lets time pass in a synctest bubble, where the clock is fake.
func elapse(d time.Duration) { <-time.After(d) }

func number(n int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

func numberOf(m []byte) int { return int(binary.BigEndian.Uint64(m)) }

// collect receives until the connection ends and returns the numbers it got.
func collect(c conn) (got []int, end error) {
	for {
		m, err := c.Receive(context.Background())
		if err != nil {
			return got, err
		}
		got = append(got, numberOf(m))
	}
}

// causeOf returns the cause of a Reason that was returned as an error.
func causeOf(err error) link.Cause {
	var r *link.Reason
	if errors.As(err, &r) {
		return r.Cause
	}
	return 0
}

func upTo(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i + 1
	}
	return s
}
