package link_test

import (
	"context"
	"errors"
	"testing"

	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/memory"
)

// stalled is a Conn whose peer sends one message and takes none.
type stalled struct {
	messages chan []byte
	closed   chan struct{}
}

func (c *stalled) Receive(context.Context) ([]byte, error) {
	select {
	case m := <-c.messages:
		return m, nil
	case <-c.closed:
		return nil, errors.New("closed")
	}
}

func (c *stalled) Send(context.Context, []byte) error {
	<-c.closed
	return errors.New("closed")
}

func (c *stalled) Close(link.Reason) error {
	close(c.closed)
	return nil
}

func TestALinkCountsWhatItHoldsUntilItIsGone(t *testing.T) {
	const size = 100 << 10
	b := memory.New(0)
	c := &stalled{messages: make(chan []byte, 1), closed: make(chan struct{})}
	l := link.New[[]byte, []byte](c, link.Options{QueueBytes: 2 * size, Memory: b})
	received, processed, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		l.Run(t.Context(), func(context.Context, []byte) error {
			close(received)
			<-processed
			return nil
		}, nil)
	}()
	for range 2 {
		if err := l.Send(t.Context(), make([]byte, size), size); err != nil {
			t.Fatal(err)
		}
	}
	waits, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() { left <- l.Send(waits, make([]byte, size), size) }()
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("a Send that waits for room: got %v, want the end of its context", err)
	}
	if got := b.HeldAs(memory.Sending); got != 2*size {
		t.Errorf("got %d bytes that wait to be sent, want %d", got, 2*size)
	}
	c.messages <- make([]byte, size)
	<-received
	if got := b.HeldAs(memory.Bodies); got != size {
		t.Errorf("got %d bytes received, want %d until they are processed", got, size)
	}
	close(processed)
	l.Close(link.Reason{Cause: link.PeerGone})
	<-ended
	if got := b.Held(); got != 0 {
		t.Errorf("got %d bytes held after the link, want none", got)
	}
}
