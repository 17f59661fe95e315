package acp

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
)

// redeliverWindow is how long after a successful write a result is sent again if the
// connection is lost. It exceeds the time that it takes to detect a dead peer.
const redeliverWindow = time.Minute

// linkOutlet sends to the one connection of a peer.
type linkOutlet struct {
	link *link.Link[[]byte, []byte]

	mu      sync.Mutex
	results []*sentResult // the latest ones
}

// sentResult is a result that was sent. taken is when the transport took it; zero before.
type sentResult struct {
	pendingResult
	taken time.Time
}

func (o *linkOutlet) hold() { o.link.Hold() }

func (o *linkOutlet) flush() { o.link.Flush() }

func (o *linkOutlet) away() bool { return false }

func (o *linkOutlet) owed() []pendingResult { return nil }

func (o *linkOutlet) reclaim(func(core.TaskID) bool) []pendingResult { return nil }

func (o *linkOutlet) send(ctx context.Context, m message) error {
	sent := m.sent
	if m.result != nil {
		sent = o.track(*m.result)
	}
	err := o.link.SendThen(ctx, m.json, len(m.json), sent)
	if err != nil && m.lost != nil {
		m.lost()
	}
	return err
}

// track remembers a result that is being sent. Call taken once the transport took it.
func (o *linkOutlet) track(owed pendingResult) (taken func()) {
	h := &sentResult{pendingResult: owed}
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.results = slices.DeleteFunc(o.results, func(h *sentResult) bool { return !h.taken.IsZero() && now.Sub(h.taken) >= redeliverWindow })
	o.results = append(o.results[max(0, len(o.results)+1-maxPending):], h)
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		h.taken = time.Now()
	}
}

// unacked returns, after the connection has ended, the sent results that may not have
// reached the peer. A peer that closed normally has them all.
func (o *linkOutlet) unacked(end link.Reason) (due []pendingResult) {
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, h := range o.results {
		if h.taken.IsZero() || end.Cause != link.Normal && now.Sub(h.taken) < redeliverWindow {
			due = append(due, h.pendingResult)
		}
	}
	return due
}
