package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/agent"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/timer"
)

// How a unit is started again.
const (
	minBackoff = 500 * time.Millisecond
	maxBackoff = 30 * time.Second
	// healthy is how long after a start the delay begins from the start.
	healthy = time.Minute
	// maxStarts is how many starts in a row that never got ready make a unit failed.
	maxStarts = 5
	// startTimeout is how long a start may take.
	startTimeout = time.Minute
)

// The causes for which a unit is ended.
var (
	errNotReady = fmt.Errorf("it was not ready within %s", startTimeout)
	errByHand   = errors.New("it is started again by hand")
)

// life runs a unit once: it calls ready when the unit does its work, and returns why it ended.
// It ends with ctx.
type life func(ctx context.Context, ready func()) error

// unit is something that is started again whenever it ends.
type unit struct {
	kind, name string // for the log
	log        *slog.Logger
	live       life
	// changed is told of every new state, one call at a time.
	changed func(core.Child)
	// pid returns the id of the process that runs, or 0.
	pid func() int
	// remote says that a failed unit is tried again by itself: what it connects to may come back.
	remote bool
	// final says that nobody can start a failed unit again: then run returns.
	final bool
	// await waits for what a start needs before its time begins; nil for nothing. It ends the
	// context of run where there is nothing to wait for.
	await func(ctx context.Context)
	// said returns what the process said last on stderr; nil for nothing.
	said func() string

	restart chan struct{} // holds one wish to start again while nothing runs

	mu    sync.Mutex
	state core.Child
	end   context.CancelCauseFunc // ends what runs; nil while nothing does
}

func newUnit(kind, name string, log *slog.Logger, live life, changed func(core.Child), pid func() int) *unit {
	return &unit{kind: kind, name: name, log: log, live: live, changed: changed, pid: pid, restart: make(chan struct{}, 1)}
}

// Restart starts the unit again: at once if it failed or waits for its next start, else after
// its process was ended.
func (u *unit) Restart() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.end != nil {
		u.end(errByHand)
		return
	}
	select {
	case u.restart <- struct{}{}:
	default: // somebody else has asked already
	}
}

// State returns the present state.
func (u *unit) State() core.Child {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.state
}

// set changes the state.
func (u *unit) set(state core.ChildState, change func(*core.Child)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.state.State, u.state.PID, u.state.RetryMS = state, 0, 0
	if state == core.ChildReady || state == core.ChildStarting {
		u.state.PID = u.pid()
	}
	if change != nil {
		change(&u.state)
	}
	u.changed(u.state)
}

// started notes that the process has another id now.
func (u *unit) started() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if pid := u.pid(); pid != u.state.PID && u.state.State != core.ChildFailed {
		u.state.PID = pid
		u.changed(u.state)
	}
}

// lost notes that the unit is about to end, before its life has returned.
func (u *unit) lost(why error) {
	u.set(core.ChildRestarting, func(c *core.Child) { c.LastError = told(why) })
}

// told returns an error as people are told it: without a code, and that a process is gone they
// see.
func told(err error) string {
	if fault, is := err.(*core.Fault); is { //nolint:errorlint // what is around it is told too
		return fault.Message
	}
	if gone, is := err.(*link.Reason); is && gone.Cause == link.PeerGone && gone.Text != "" { //nolint:errorlint // what is around it is told too
		return gone.Text
	}
	return err.Error()
}

// attempts are the starts of a unit since it last did its work.
type attempts struct {
	again  timer.Pace
	starts int // in a row that never got ready
}

// newAttempts returns the attempts of a unit that is started now.
func newAttempts() attempts {
	a := attempts{again: timer.Pace{First: minBackoff, Most: maxBackoff, Rest: healthy}}
	a.again.Begin()
	return a
}

// note counts a start that has ended with err.
func (a *attempts) note(wasReady bool, err error) {
	if a.starts++; wasReady || errors.As(err, new(*agent.HubEnd)) {
		a.starts = 0
	}
}

// pause returns how long to wait before the next start. It is not the same for units that end together.
func (a *attempts) pause() time.Duration {
	wait := max(minBackoff, a.again.Next())
	return wait/2 + rand.N(wait/2)
}

// hopeless reports whether the next start would end as the last one, which ended with err.
func (a *attempts) hopeless(err error) bool {
	return a.starts >= maxStarts || errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist)
}

// run runs the unit until ctx ends, or until it has failed and is final.
func (u *unit) run(ctx context.Context) {
	u.set(core.ChildStarting, nil)
	a := newAttempts()
	for {
		if u.await != nil {
			u.await(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		wasReady, byHand, err := u.once(ctx)
		if ctx.Err() != nil {
			return
		}
		if byHand {
			a = newAttempts()
			u.set(core.ChildRestarting, func(c *core.Child) { c.Restarts, c.LastError = 0, "" })
			continue
		}
		a.note(wasReady, err)
		if err == nil {
			err = errors.New("it ended")
		}
		if a.hopeless(err) {
			byHand, ended := u.giveUp(ctx, err)
			if ended {
				return
			}
			if byHand {
				a = newAttempts()
				u.set(core.ChildStarting, func(c *core.Child) { c.Restarts = 0 })
			}
			continue
		}
		pause := a.pause()
		u.log.Warn(u.kind+" ended: it is started again", u.kind, u.name, "error", told(err), "in", pause.Round(time.Millisecond).String())
		u.set(core.ChildRestarting, func(c *core.Child) { c.LastError, c.Restarts = told(err), c.Restarts+1 })
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-u.restart:
			a = newAttempts()
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// giveUp says that the unit has failed, and waits until it is to be started again, unless it is final.
func (u *unit) giveUp(ctx context.Context, err error) (byHand, ended bool) {
	if u.final {
		u.set(core.ChildFailed, func(c *core.Child) { c.LastError = told(err) })
		return false, true
	}
	u.log.Error(u.kind+" failed: "+u.next(), u.kind, u.name, "error", told(err))
	u.set(core.ChildFailed, func(c *core.Child) {
		if c.LastError = told(err); u.remote {
			c.RetryMS = maxBackoff.Milliseconds()
		}
	})
	return u.rest(ctx)
}

// next says when a failed unit is started again.
func (u *unit) next() string {
	if u.remote {
		return "it is tried again every " + maxBackoff.String()
	}
	return "it is not started again until 'dragoman agents restart " + u.name + "' or SIGHUP"
}

// rest waits until a failed unit is to be started again: by hand, or because it is remote.
func (u *unit) rest(ctx context.Context) (byHand, ended bool) {
	var again <-chan time.Time
	if u.remote {
		timer := time.NewTimer(maxBackoff)
		defer timer.Stop()
		again = timer.C
	}
	select {
	case <-u.restart:
		return true, false
	case <-again:
		return false, false
	case <-ctx.Done():
		return false, true
	}
}

// once runs the unit once, in this goroutine: an idle child costs little more than its
// goroutines. byHand says that somebody asked for a restart.
func (u *unit) once(ctx context.Context) (wasReady, byHand bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	u.mu.Lock()
	u.end = cancel
	select {
	case <-u.restart: // this is the start that was asked for
	default:
	}
	u.mu.Unlock()
	late := time.AfterFunc(startTimeout, func() { cancel(errNotReady) })
	defer late.Stop()
	var once sync.Once
	var began atomic.Bool
	err = u.live(ctx, func() {
		once.Do(func() {
			late.Stop()
			began.Store(true)
			u.set(core.ChildReady, nil)
			u.log.Info(u.kind+" is ready", u.kind, u.name)
		})
	})
	u.mu.Lock()
	u.end = nil
	u.mu.Unlock()
	switch why := context.Cause(ctx); {
	case errors.Is(why, errByHand):
		byHand = true
	case errors.Is(why, errNotReady):
		if !errors.Is(err, errNotReady) { // else it says more
			err = errNotReady
		}
		if u.said != nil && u.said() != "" {
			err = fmt.Errorf("%w: %s", err, u.said())
		}
	}
	return began.Load(), byHand, err
}
