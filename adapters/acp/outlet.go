package acp

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core/link"
)

// redeliverWindow is for how long what a connection took may have been lost with it: longer
// than it takes to notice a dead one.
const redeliverWindow = time.Minute

// linkOutlet sends to the one connection of a peer.
type linkOutlet struct {
	link *link.Link[[]byte, []byte]

	mu      sync.Mutex
	results []*sentResult // the latest
}

// sentResult is a result that was given to the connection. taken is when the transport
// took it; zero if it has not.
type sentResult struct {
	owing
	taken time.Time
}

func (o *linkOutlet) hold() { o.link.Hold() }

func (o *linkOutlet) flush() { o.link.Flush() }

func (o *linkOutlet) away() bool { return false }

func (o *linkOutlet) reclaim() []owing { return nil }

func (o *linkOutlet) send(ctx context.Context, m message) error {
	sent := m.sent
	if m.owed != nil {
		sent = o.note(*m.owed)
	}
	err := o.link.SendThen(ctx, m.json, len(m.json), sent)
	if err != nil && m.lost != nil {
		m.lost()
	}
	return err
}

// note remembers a result that is given to the connection. The function it returns is to
// be called when the transport has taken it.
func (o *linkOutlet) note(owed owing) (taken func()) {
	h := &sentResult{owing: owed}
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.results = slices.DeleteFunc(o.results, func(h *sentResult) bool { return !h.taken.IsZero() && now.Sub(h.taken) >= redeliverWindow })
	o.results = append(o.results[max(0, len(o.results)+1-maxOwed):], h)
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		h.taken = time.Now()
	}
}

// unacked returns the results that may not have reached the peer although they were sent,
// after the connection has ended. A peer that closed in good order has what was sent.
func (o *linkOutlet) unacked(end link.Reason) (due []owing) {
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, h := range o.results {
		if h.taken.IsZero() || end.Cause != link.Normal && now.Sub(h.taken) < redeliverWindow {
			due = append(due, h.owing)
		}
	}
	return due
}
