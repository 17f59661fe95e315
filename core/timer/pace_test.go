package timer_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/dragoman-hub/dragoman/core/timer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rows returns the pauses of n times, each of which is wanted a time after the one before.
func rows(p *timer.Pace, n int, later time.Duration) (pauses []time.Duration) {
	for range n {
		pause := p.Next()
		pauses = append(pauses, pause)
		time.Sleep(pause + later)
	}
	return pauses
}

func TestThePausesOfARowGrowToTheMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &timer.Pace{First: time.Second, Most: 5 * time.Second}
		want := []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second}
		if got := rows(p, 6, time.Second); !slices.Equal(got, want) {
			t.Errorf("got the pauses %v, want %v", got, want)
		}
		p.Begin()
		if got := rows(p, 3, 0); !slices.Equal(got, want[1:4]) {
			t.Errorf("after a new beginning: got the pauses %v, want %v", got, want[1:4])
		}
	})
}

func TestWhatComesAfterARestComesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, p := range []*timer.Pace{{First: time.Second, Most: 5 * time.Second}, {First: time.Second, Most: 2 * time.Second, Rest: 5 * time.Second}} {
			if got, want := rows(p, 3, 5*time.Second), make([]time.Duration, 3); !slices.Equal(got, want) {
				t.Errorf("got the pauses %v, want %v", got, want)
			}
			time.Sleep(time.Minute)
			if got, want := rows(p, 2, 4*time.Second), []time.Duration{0, time.Second}; !slices.Equal(got, want) {
				t.Errorf("before the rest is over: got the pauses %v, want %v", got, want)
			}
		}
	})
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := timer.Pace{First: time.Minute, Most: time.Hour}
		why := errors.New("no time")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer cancel()
		if err := p.Wait(ctx); err != nil {
			t.Errorf("the first time: got %v, want it at once", err)
		}
		for range 2 {
			if err := p.Wait(ctx); !errors.Is(err, why) {
				t.Errorf("got %v, want %v", err, why)
			}
		}
	})
}
