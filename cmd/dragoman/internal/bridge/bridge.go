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

// MaxLine is the longest line that a bridge carries: as much as the hub reads past
// to refuse it, so that the hub itself says what its limits are.
const MaxLine = ws.DefaultHardLimit

// Bridge is how a dialect goes over stdin and stdout to a hub.
type Bridge struct {
	Path string // of the hub
	// asks says which answer a line of ours wants, "" for none.
	asks func(line []byte) string
	// answers says which of them a frame of the hub is.
	answers func(frame []byte) []string
	// refuse makes the answer to a line that cannot be carried.
	refuse func(why *link.Reject) []byte
	// last, where it is set, is sent behind the last line: the hub answers it at once and
	// in order, so that whatever it has refused until then has been told. Its answer is
	// not printed.
	last func() (line []byte, answer string)
	// void says, once that answer has come, which other answers will not.
	void func() []string
}

// unprinted is the debt of a frame that came and is not printed yet.
const unprinted = "unprinted"

// Carry carries frames both ways until the hub closes, or stdin has ended and
// everything asked was answered.
func (b Bridge) Carry(ctx context.Context, local *stdio.Conn, remote *ws.Conn) error {
	d := &debts{open: map[string]int{}, paid: make(chan struct{})}
	up := link.New(remote, client.LinkOptions)
	said, lastAnswer := false, ""
	var last []byte
	if b.last != nil {
		last, lastAnswer = b.last()
	}
	down := link.New(local, link.Options{EOF: func() {
		if said && last != nil {
			d.owe(lastAnswer)
			_ = up.Send(ctx, last, len(last)) // if it cannot be sent, the hub has gone
		}
		d.close()
	}})
	printed := func(ctx context.Context, frame []byte, answers ...string) error {
		d.owe(unprinted)
		return down.SendThen(ctx, frame, len(frame), func() { d.pay(append(answers, unprinted)) })
	}
	var group sync.WaitGroup
	var end link.Reason
	group.Go(func() {
		end = up.Run(ctx, func(ctx context.Context, frame []byte) error {
			answers := b.answers(frame)
			if len(answers) > 0 && answers[0] == lastAnswer {
				d.pay(append(answers, b.void()...))
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
			d.owe(b.asks(line))
			return up.Send(ctx, line, len(line))
		}, func(ctx context.Context, r *link.Reject) error {
			return printed(ctx, b.refuse(r))
		})
	})
	select {
	case <-d.paid:
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

// debts counts what was asked and not answered yet.
type debts struct {
	mu     sync.Mutex
	open   map[string]int
	closed bool // nothing more will be asked
	paid   chan struct{}
}

func (d *debts) owe(asks string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if asks != "" {
		d.open[asks]++
	}
}

func (d *debts) pay(answers []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range answers {
		if d.open[a]--; d.open[a] <= 0 {
			delete(d.open, a)
		}
	}
	d.settle()
}

func (d *debts) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.settle()
}

func (d *debts) settle() {
	if d.closed && len(d.open) == 0 {
		select {
		case <-d.paid:
		default:
			close(d.paid)
		}
	}
}
