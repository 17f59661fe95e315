package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// overdue is how long after a turn a side may still answer what was due in it.
const overdue = 5 * time.Second

// timerError is by how much a timer of Go may be late in a process with nothing else to do. A question that is sent
// late for that reason would count against the side.
const timerError = 2 * time.Millisecond

// openTurn asks at the rate of the load, evenly spaced, for a span of time. A question that is due while every worker
// waits for an answer is sent late, and its time counts from when it was due. It returns an error that says how many
// questions were not sent if the side does not keep up. Nap sleeps for as much of a time as is left of it at the end.
func (s *side) openTurn(ctx context.Context, span time.Duration, l load, nap func(time.Duration)) (turn, error) {
	all := max(1, int64(l.rate*span.Seconds()))
	during, cancel := context.WithTimeout(ctx, span+overdue)
	defer cancel()
	var taken atomic.Int64
	began := time.Now()
	t, err := s.askAll(during, l, func(ctx context.Context) (time.Time, bool) {
		nth := taken.Add(1) - 1
		due := began.Add(time.Duration(float64(nth) / l.rate * float64(time.Second)))
		if nth < all {
			_ = pause(ctx, time.Until(due)-timerError) // asking returns why ctx has ended
			for d := time.Until(due); d > 0 && ctx.Err() == nil; d = time.Until(due) {
				nap(d)
			}
		}
		return due, nth < all
	})
	if err != nil && during.Err() != nil && ctx.Err() == nil {
		sent, answered := min(all, taken.Load()), int64(len(t.took.values))
		err = fmt.Errorf("overloaded: %d questions were due at %.0f a second; %s later %d of them were not sent and %d not answered: %w",
			all, l.rate, overdue, all-sent, sent-answered, err)
	}
	return t, err
}

// askAtRate has one kind of requester ask one kind of agent at a fixed rate: half of what the slowest side reaches in
// the row's own closed loop, so that all sides get the same questions at the same times.
func askAtRate(requester, dialect string) measurement {
	return func(ctx context.Context, b *bench, r *RowResult) error {
		to, err := b.sharing(ctx, noHistory)
		if err != nil {
			return err
		}
		sides, err := connectEach(ctx, to, func(ctx context.Context, s server) (*side, error) {
			return requesters()[requester](ctx, s, agentID(dialect))
		})
		if err != nil {
			return err
		}
		l := load{atOnce: parallel, chunks: 1}
		closed, err := takeTurns(ctx, b.options, sides, l, nil)
		if err != nil {
			return errors.Join(err, closeAll(sides))
		}
		for i, s := range closed.Sides {
			r.figure("closed loop, "+s.Name, s.Rate, "a second")
			if half := s.Rate / 2; i == 0 || half < l.rate {
				l.rate = half
			}
		}
		r.figure("questions due", l.rate, "a second")
		return b.turns(ctx, r, sides, l, nil)
	}
}
