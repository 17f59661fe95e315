package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// side is the client of one of the servers that take turns.
type side struct {
	name string
	// ask has a worker ask for chunks and returns the bytes of text in the answer.
	ask   func(ctx context.Context, worker, chunks int) (int, error)
	close func() error
	// wire counts the bytes received over WebSockets, frames included.
	wire atomic.Int64
}

func closeAll(sides []*side) error {
	var errs []error
	for _, s := range sides {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}

// oneEach returns a side with n connections, one for each worker.
func oneEach(n int, connect func(worker int, into *side) (*side, error)) (*side, error) {
	all := &side{}
	var parts []*side
	for i := range n {
		part, err := connect(i, all)
		if err != nil {
			return nil, errors.Join(err, closeAll(parts))
		}
		parts = append(parts, part)
	}
	all.close = func() error { return closeAll(parts) }
	all.ask = func(ctx context.Context, worker, chunks int) (int, error) {
		return parts[worker].ask(ctx, worker, chunks)
	}
	return all, nil
}

// load is what a side is asked for: atOnce questions at a time at the most, each for chunks.
type load struct {
	atOnce, chunks int
	// rate is how many questions are due a second. With 0 each worker asks again once it has its answer.
	rate float64
}

// takeTurns has the sides ask in turns. If besides has a function for a side, it runs during
// the turns of that side.
func takeTurns(ctx context.Context, o options, sides []*side, l load, besides map[*side]func(context.Context) error) (Comparison, error) {
	c := Comparison{AtOnce: l.atOnce, Chunks: l.chunks}
	for _, s := range sides {
		c.Sides = append(c.Sides, SideResult{Name: s.name})
	}
	for i := range o.rounds + 1 {
		turns := make([]turn, len(sides))
		for n, s := range sides {
			var err error
			if turns[n], err = s.turnBeside(ctx, o.each, l, besides[s]); err != nil {
				return c, fmt.Errorf("asking the %s: %w", s.name, err)
			}
		}
		if i > 0 { // the first round warms up
			c.add(turns)
		}
	}
	c.finish()
	return c, nil
}

// turnBeside takes a turn while beside runs repeatedly.
func (s *side) turnBeside(ctx context.Context, span time.Duration, l load, beside func(context.Context) error) (turn, error) {
	if beside == nil {
		return s.turn(ctx, span, l)
	}
	ended := make(chan error, 1)
	during, stop := context.WithCancel(ctx)
	go func() {
		var err error
		for err == nil && during.Err() == nil {
			err = beside(ctx) // not canceled, so that the next turn is not disturbed
		}
		ended <- err
	}()
	t, err := s.turn(ctx, span, l)
	stop()
	return t, errors.Join(err, <-ended)
}

// turn asks for a span of time: as often as possible, or at the rate of the load.
func (s *side) turn(ctx context.Context, span time.Duration, l load) (turn, error) {
	if l.rate > 0 {
		return s.openTurn(ctx, span, l, nap)
	}
	began := time.Now()
	return s.askAll(ctx, l, func(context.Context) (time.Time, bool) {
		now := time.Now()
		return now, now.Sub(began) < span
	})
}

// askAll has each worker ask the questions that next gives it until there are no more. Next
// returns when a question is due and waits until then; the time of its answer counts from there.
func (s *side) askAll(ctx context.Context, l load, next func(context.Context) (due time.Time, more bool)) (turn, error) {
	var mu sync.Mutex
	var t turn
	var first error
	var group sync.WaitGroup
	s.wire.Store(0)
	began := time.Now()
	for w := range l.atOnce {
		group.Go(func() {
			var mine series
			var err error
			for due, more := next(ctx); more; due, more = next(ctx) {
				var n int
				if n, err = s.ask(ctx, w, l.chunks); err == nil && n != l.chunks*chunkBytes {
					err = fmt.Errorf("got %d bytes of text, want %d: text was lost", n, l.chunks*chunkBytes)
				}
				if err != nil {
					break
				}
				mine.add(time.Since(due))
			}
			mu.Lock()
			defer mu.Unlock()
			t.took.values = append(t.took.values, mine.values...)
			if first == nil {
				first = err
			}
		})
	}
	group.Wait()
	t.rate = float64(len(t.took.values)*l.chunks) / time.Since(began).Seconds()
	t.wire = float64(s.wire.Load()) / float64(max(1, len(t.took.values)))
	t.took.sort()
	return t, first
}
