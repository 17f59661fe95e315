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

// MaxLine is the longest line that a bridge passes on: as much as the hub reads in order to
// refuse it, so that the hub itself reports its limits.
const MaxLine = ws.DefaultHardLimit

// Bridge is how a dialect goes over stdin and stdout to a hub.
type Bridge struct {
	Path string // of the hub
	// asks returns the answer that a line from stdin waits for, "" for none.
	asks func(line []byte) string
	// answers returns which of them a frame from the hub is.
	answers func(frame []byte) []string
	// refuse makes the answer to a line that cannot be sent.
	refuse func(why *link.Reject) []byte
	// last, if set, makes a line that is sent after the last one of stdin. The hub answers
	// it at once and in order, so that everything it refused has been reported by then. Its
	// answer is not printed.
	last func() (line []byte, answer string)
	// lost returns, after that answer, which other answers will not come.
	lost func() []string
}

// unprinted is pending while a frame from the hub waits to be printed.
const unprinted = "unprinted"

// Carry passes frames both ways until the hub closes, or stdin has ended and every answer
// has come.
func (b Bridge) Carry(ctx context.Context, local *stdio.Conn, remote *ws.Conn) error {
	d := &pending{open: map[string]int{}, done: make(chan struct{})}
	up := link.New(remote, client.LinkOptions)
	said, lastAnswer := false, ""
	var last []byte
	if b.last != nil {
		last, lastAnswer = b.last()
	}
	down := link.New(local, link.Options{EOF: func() {
		if said && last != nil {
			d.expect(lastAnswer)
			_ = up.Send(ctx, last, len(last)) // if it cannot be sent, the hub has gone
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
			if len(answers) > 0 && answers[0] == lastAnswer {
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
			said = true
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

// pending counts the answers that have not come yet.
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
