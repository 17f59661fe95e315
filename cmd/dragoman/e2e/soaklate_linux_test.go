package e2e

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"
)

const (
	lateSleep  = 100 * time.Millisecond // what the probe sleeps at a time
	lateShare  = 0.5                    // of a time, from which on the machine was late in it: each sleep took twice as long
	lateMemory = 2 * soakPatience       // how long the probe remembers: longer than a question takes
)

// overslept is a time in which the probe should have been awake.
type overslept struct{ due, woke time.Time }

// lateProbe measures how late the machine is, without the hub: it sleeps again and again, and
// remembers by how much it overslept.
type lateProbe struct {
	mu        sync.Mutex
	due       time.Time // the end of the sleep it is in
	overslept []overslept
	slept, in time.Duration // late, and in all
}

// run sleeps until ctx ends.
func (p *lateProbe) run(ctx context.Context) {
	p.mu.Lock()
	p.due = time.Now().Add(lateSleep)
	p.mu.Unlock()
	for ctx.Err() == nil {
		pauseFor(ctx, lateSleep)
		p.woke(time.Now())
	}
}

// woke records the end of a sleep, with which the next one begins.
func (p *lateProbe) woke(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.in += lateSleep
	if late := now.Sub(p.due); late > 0 {
		p.overslept = append(p.overslept, overslept{p.due, now})
		p.slept, p.in = p.slept+late, p.in+late
	}
	p.overslept = slices.DeleteFunc(p.overslept, func(o overslept) bool { return now.Sub(o.woke) > lateMemory })
	p.due = now.Add(lateSleep)
}

// share is the share of a time in which the probe had overslept.
func (p *lateProbe) share(from, to time.Time) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.overslept
	if !p.due.IsZero() && to.After(p.due) { // it oversleeps now
		all = append(slices.Clone(all), overslept{p.due, to})
	}
	return lateIn(all, from, to)
}

// lateIn is the share of a time that is overslept.
func lateIn(all []overslept, from, to time.Time) float64 {
	if !to.After(from) {
		return 0
	}
	var late time.Duration
	for _, o := range all {
		begin, end := o.due, o.woke
		if begin.Before(from) {
			begin = from
		}
		if end.After(to) {
			end = to
		}
		late += max(0, end.Sub(begin))
	}
	return late.Seconds() / to.Sub(from).Seconds()
}

// overall is the share of all the time in which the probe had overslept.
func (p *lateProbe) overall() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slept.Seconds() / max(p.in, 1).Seconds()
}

func TestSoakKnowsWhenTheMachineWasLate(t *testing.T) {
	zero := time.Unix(1000, 0)
	at := func(ms int) time.Time { return zero.Add(time.Duration(ms) * time.Millisecond) }
	p := &lateProbe{}
	for _, sleep := range [][2]int{{100, 100}, {200, 200}, {300, 700}, {800, 900}} { // due, woke
		p.due = at(sleep[0])
		p.woke(at(sleep[1]))
	}
	p.due = at(1000)
	for _, tt := range []struct {
		name     string
		from, to int
		want     float64
	}{
		{"before it was late", 0, 300, 0},
		{"while it was late", 400, 600, 1},
		{"from before until within", 100, 500, 0.5},
		{"over both", 0, 1000, 0.5},
		{"while it oversleeps", 900, 1200, 2. / 3},
		{"no time", 400, 400, 0},
	} {
		if got := p.share(at(tt.from), at(tt.to)); max(got-tt.want, tt.want-got) > 1e-9 {
			t.Errorf("%s: got a share of %v, want %v", tt.name, got, tt.want)
		}
	}
	if got, want := p.overall(), 500./900; max(got-want, want-got) > 1e-9 {
		t.Errorf("got %v of all the time late, want %v", got, want)
	}
	p.due = at(900).Add(lateMemory + time.Second)
	p.woke(p.due.Add(time.Second))
	if got := p.share(at(0), at(900)); got != 0 {
		t.Errorf("got a share of %v of a time that is long past, want it forgotten", got)
	}
}
