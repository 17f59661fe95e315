package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/agent"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
)

// watched is a unit whose states a test sees.
type watched struct {
	*unit

	mu     sync.Mutex
	states []core.ChildState
	starts []time.Duration // since the beginning
}

// begun returns when the unit was started, since the beginning.
func (w *watched) begun() []time.Duration {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.starts)
}

// watch runs a test with a unit that lives as live says, under a fake clock.
func watch(t *testing.T, live life, test func(*watched), change ...func(*unit)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w, began := &watched{}, time.Now()
		w.unit = newUnit(kindAgent, "a", slog.New(slog.DiscardHandler), func(ctx context.Context, ready func()) error {
			w.mu.Lock()
			w.starts = append(w.starts, time.Since(began))
			w.mu.Unlock()
			return live(ctx, ready)
		}, func(c core.Child) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.states = append(w.states, c.State)
		}, func() int { return 7 })
		for _, c := range change {
			c(w.unit)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.run(ctx) }()
		synctest.Wait()
		test(w)
		stop()
		<-done
	})
}

func (w *watched) wants(t *testing.T, want ...core.ChildState) {
	t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.states, want) {
		t.Errorf("the states were %v, want %v", w.states, want)
	}
}

func TestAUnitThatIsReadyStaysReady(t *testing.T) {
	watch(t, func(ctx context.Context, ready func()) error {
		ready()
		<-ctx.Done()
		return nil
	}, func(w *watched) {
		time.Sleep(time.Hour)
		synctest.Wait()
		w.wants(t, core.ChildStarting, core.ChildReady)
		if got := w.State(); got.PID != 7 || got.Restarts != 0 || got.LastError != "" {
			t.Errorf("got %+v, want a process without restarts", got)
		}
	})
}

func TestAUnitThatNeverGetsReadyFailsAfterFiveStarts(t *testing.T) {
	n := 0
	watch(t, func(context.Context, func()) error {
		n++
		return fmt.Errorf("exit status %d", n)
	}, func(w *watched) {
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := w.State(); got.State != core.ChildFailed || got.Restarts != 4 || got.LastError != "exit status 5" || got.PID != 0 || got.RetryMS != 0 {
			t.Errorf("got %+v, want failed with the last error after 4 restarts, and no time of another try", got)
		}
		starts := w.begun()
		for i := 1; i < len(starts); i++ {
			pause, least := starts[i]-starts[i-1], minBackoff<<(i-1)
			if pause < least/2 || pause > least {
				t.Errorf("the pause before start %d was %v, want between %v and %v", i+1, pause, least/2, least)
			}
		}
		w.Restart()
		starts = w.begun()
		if got := w.State(); len(starts) != 6 || got.State != core.ChildRestarting {
			t.Errorf("after a restart by hand there were %d starts and it is %s, want 6 and restarting", len(starts), got.State)
		}
	})
}

func TestAMissingProgramFailsAtOnce(t *testing.T) {
	watch(t, func(context.Context, func()) error { return fmt.Errorf("nosuch: %w", exec.ErrNotFound) }, func(w *watched) {
		w.wants(t, core.ChildStarting, core.ChildFailed)
	})
}

func TestTheDelayGrowsToACapAndBeginsAgainAfterAMinuteOfHealth(t *testing.T) {
	var health atomic.Int64
	health.Store(int64(time.Second))
	watch(t, func(ctx context.Context, ready func()) error {
		ready()
		select {
		case <-time.After(time.Duration(health.Load())):
		case <-ctx.Done():
		}
		return errors.New("exit status 1")
	}, func(w *watched) {
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		starts := w.begun()
		last := len(starts) - 1
		if pause := starts[last] - starts[last-1] - time.Duration(health.Load()); pause < maxBackoff/2 || pause > maxBackoff {
			t.Errorf("after many losses the pause is %v, want %v at most", pause, maxBackoff)
		}
		health.Store(int64(2 * time.Minute))
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		starts = w.begun()
		last = len(starts) - 1
		if pause := starts[last] - starts[last-1] - time.Duration(health.Load()); pause > minBackoff {
			t.Errorf("after two minutes of health the pause is %v, want %v at most", pause, minBackoff)
		}
		if got := w.State(); got.State == core.ChildFailed {
			t.Error("it failed, want it started again for ever: it got ready each time")
		}
	})
}

func TestAUnitThatTakesTooLongToStartIsStartedAgain(t *testing.T) {
	watch(t, func(ctx context.Context, _ func()) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}, func(w *watched) {
		time.Sleep(startTimeout + time.Second)
		synctest.Wait()
		w.wants(t, core.ChildStarting, core.ChildRestarting)
		if got := w.State().LastError; got != errNotReady.Error() {
			t.Errorf("the last error is %q, want %q", got, errNotReady)
		}
	})
}

func TestARestartByHandEndsWhatRuns(t *testing.T) {
	ended := 0
	watch(t, func(ctx context.Context, ready func()) error {
		ready()
		<-ctx.Done()
		ended++
		return nil
	}, func(w *watched) {
		w.Restart()
		w.wants(t, core.ChildStarting, core.ChildReady, core.ChildRestarting, core.ChildReady)
		if ended != 1 {
			t.Errorf("%d processes were ended, want 1", ended)
		}
	})
}

func TestARemoteThatFailedIsTriedAgainByItself(t *testing.T) {
	var back atomic.Bool
	var logged strings.Builder
	watch(t, func(ctx context.Context, ready func()) error {
		if !back.Load() {
			return errors.New("connection refused")
		}
		ready()
		<-ctx.Done()
		return nil
	}, func(w *watched) {
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := w.State(); got.State != core.ChildFailed || got.Retry() != maxBackoff {
			t.Errorf("after a minute it is %s and tried again every %s, want failed and %s", got.State, got.Retry(), maxBackoff)
		}
		if got, want := logged.String(), `msg="agent failed: it is tried again every 30s"`; !strings.Contains(got, want) {
			t.Errorf("got the log\n%s\nwant %s", got, want)
		}
		back.Store(true)
		time.Sleep(2 * maxBackoff)
		synctest.Wait()
		if got := w.State(); got.State != core.ChildReady || got.RetryMS != 0 {
			t.Errorf("once it is back it is %s and tried again every %s, want ready and no such time", got.State, got.Retry())
		}
	}, func(u *unit) { u.remote, u.log = true, slog.New(slog.NewTextHandler(&logged, nil)) })
}

func TestALossOfTheHubIsNotAFailureOfWhatWasStarted(t *testing.T) {
	watch(t, func(context.Context, func()) error {
		return &agent.HubEnd{Err: errors.New("the hub is stopping")}
	}, func(w *watched) {
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if got := w.State(); got.State == core.ChildFailed || len(w.begun()) < 2*maxStarts {
			t.Errorf("after %d losses of the hub it is %s (%s), want it started again for ever", len(w.begun()), got.State, got.LastError)
		}
	})
}

func TestTheTimeOfAStartBeginsAfterWhatItWaitsFor(t *testing.T) {
	waited := 0
	watch(t, func(ctx context.Context, ready func()) error {
		ready()
		<-ctx.Done()
		return nil
	}, func(w *watched) {
		time.Sleep(2 * startTimeout)
		w.wants(t, core.ChildStarting)
		time.Sleep(startTimeout)
		w.wants(t, core.ChildStarting, core.ChildReady)
		if waited != 1 {
			t.Errorf("it waited %d times, want once", waited)
		}
	}, func(u *unit) {
		u.await = func(context.Context) {
			time.Sleep(3 * startTimeout)
			waited++
		}
	})
}

func TestAFinalUnitEndsWhenItHasFailed(t *testing.T) {
	watch(t, func(context.Context, func()) error {
		return link.Because(link.PeerGone, "the process ended with exit status 3")
	}, func(w *watched) {
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := w.State(); got.State != core.ChildFailed || got.LastError != "the process ended with exit status 3" || len(w.begun()) != maxStarts {
			t.Errorf("got %+v after %d starts, want it failed after %d with the end of the process", got, len(w.begun()), maxStarts)
		}
		w.Restart()
		if len(w.begun()) != maxStarts {
			t.Error("it was started again, want run to have returned")
		}
	}, func(u *unit) { u.final = true })
}

func TestAWishToStartAgainIsFulfilledByTheNextStart(t *testing.T) {
	watch(t, func(context.Context, func()) error { return errors.New("exit status 1") }, func(w *watched) {
		time.Sleep(time.Hour)
		starts := w.begun()
		if pause := starts[1] - starts[0]; pause < minBackoff/2 {
			t.Errorf("got a pause of %v before the second start, want %v at least: nobody asked again", pause, minBackoff/2)
		}
	}, func(u *unit) {
		wish := sync.OnceFunc(u.Restart)
		u.await = func(context.Context) { wish() }
	})
}
