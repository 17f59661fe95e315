package bridge

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/stdio"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

// MaxLine is the maximum length of a line that a bridge passes on. The hub reads as much in
// order to refuse it, so that the hub itself reports its limits.
const MaxLine = ws.DefaultHardLimit

// Bridge defines how a dialect is carried between stdin and stdout and a hub.
type Bridge struct {
	Path string // of the hub
	// asks returns the answer that a line from stdin expects, "" for none.
	asks func(line []byte) string
	// answers returns the expected answers that a frame from the hub is.
	answers func(frame []byte) []string
	// refuse returns the answer to a line that cannot be sent.
	refuse func(why *link.Reject) []byte
	// last, if set, returns a line that is sent after the last one of stdin. The hub answers
	// it at once and in order, so every refusal comes before its answer, which is not
	// printed.
	last func() (line []byte, answer string)
	// lost returns, after that answer, the answers that will never come.
	lost func() []string
}

// unprinted is pending while a frame from the hub waits to be printed.
const unprinted = "unprinted"

// Carry passes frames both ways until the hub closes the connection, or stdin has ended and
// every answer has arrived.
func (b Bridge) Carry(ctx context.Context, local *stdio.Conn, remote *ws.Conn) error {
	d := &pending{open: map[string]int{}, done: make(chan struct{})}
	up := link.New(remote, client.LinkOptions)
	sent, lastAnswer := false, ""
	var last []byte
	if b.last != nil {
		last, lastAnswer = b.last()
	}
	down := link.New(local, link.Options{EOF: func() {
		if sent && last != nil {
			d.expect(lastAnswer)
			_ = up.Send(ctx, last, len(last)) // an error means that the hub has gone
		}
		d.close()
	}})
	printed := func(ctx context.Context, frame []byte, answers ...string) error {
		d.expect(unprinted)
		return down.SendThen(ctx, frame, len(frame), func() { d.settle(append(answers, unprinted)) })
	}
	var group sync.WaitGroup
	var end link.Reason
	group.Go(func() {
		end = up.Run(ctx, func(ctx context.Context, frame []byte) error {
			answers := b.answers(frame)
			if last != nil && len(answers) > 0 && answers[0] == lastAnswer {
				d.settle(append(answers, b.lost()...))
				return nil
			}
			return printed(ctx, frame, answers...)
		}, nil)
		down.Close(link.Reason{Cause: link.Normal, Text: "the hub has gone"})
	})
	group.Go(func() {
		down.Run(ctx, func(ctx context.Context, line []byte) error {
			switch {
			case len(line) == 0:
				return nil
			case !utf8.Valid(line):
				return printed(ctx, b.refuse(&link.Reject{Cause: link.Protocol, Text: "the line is not UTF-8"}))
			}
			sent = true
			d.expect(b.asks(line))
			return up.Send(ctx, line, len(line))
		}, func(ctx context.Context, r *link.Reject) error {
			return printed(ctx, b.refuse(r))
		})
	})
	select {
	case <-d.done:
	case <-up.Done():
	case <-down.Done():
	}
	up.Close(link.Reason{Cause: link.Normal})
	down.Close(link.Reason{Cause: link.Normal})
	group.Wait()
	if end.Cause != link.Normal && end.Cause != link.ShuttingDown {
		return fmt.Errorf("the connection to the hub ended: %w", errors.New(end.Error()))
	}
	return nil
}

// pending counts the outstanding answers.
type pending struct {
	mu     sync.Mutex
	open   map[string]int
	closed bool // stdin has ended
	done   chan struct{}
}

func (d *pending) expect(answer string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if answer != "" {
		d.open[answer]++
	}
}

func (d *pending) settle(answers []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range answers {
		if d.open[a]--; d.open[a] <= 0 {
			delete(d.open, a)
		}
	}
	d.finish()
}

func (d *pending) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.finish()
}

func (d *pending) finish() {
	if d.closed && len(d.open) == 0 {
		select {
		case <-d.done:
		default:
			close(d.done)
		}
	}
}
