package timer

import (
	"cmp"
	"context"
	"time"
)

// Pace says how long to wait before something is done again. The first time of a row comes at once,
// the next after First, each further one after twice as long, at most Most. A row ends once Rest has
// passed since its last time. A Pace without First has no pauses. One goroutine uses it at a time.
type Pace struct {
	// First is the pause before the second time of a row, and Most the longest.
	First, Most time.Duration
	// Rest ends a row; zero is Most.
	Rest time.Duration

	pause time.Duration // before the last time
	last  time.Time     // the last time; zero before the first
}

// Next returns how long to wait before the next time, which counts as being then.
func (p *Pace) Next() time.Duration {
	now := time.Now()
	switch {
	case p.last.IsZero() || now.Sub(p.last) >= cmp.Or(p.Rest, p.Most):
		p.pause = 0
	case p.pause == 0:
		p.pause = p.First
	default:
		p.pause = min(2*p.pause, p.Most)
	}
	p.last = now.Add(p.pause)
	return p.pause
}

// Begin makes now the first time of a row.
func (p *Pace) Begin() { p.pause, p.last = 0, time.Now() }

// Wait waits for the next time. It returns the cause of ctx if that ends before.
func (p *Pace) Wait(ctx context.Context) error {
	return Sleep(ctx, p.Next())
}

// Sleep waits for a time, and returns the cause of ctx if that ends before.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
