package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// The delay between two attempts.
const (
	minDelay = 100 * time.Millisecond
	maxDelay = 2 * time.Second
)

// unavailable is the error of a hub that is not running yet or accepts no connections.
type unavailable struct {
	error
	// untaken says that the hub has not taken the request.
	untaken bool
}

// Unwrap returns the cause.
func (a unavailable) Unwrap() error { return a.error }

// IsNoHub reports whether an error means that there is no hub yet.
func IsNoHub(err error) bool {
	var a unavailable
	return errors.As(err, &a) || errors.Is(err, ErrNotAccepted)
}

// isUntaken reports whether an error means that no hub has taken the request.
func isUntaken(err error) bool {
	var a unavailable
	return errors.As(err, &a) && a.untaken
}

// IsAbsent reports whether an error means that there is no hub yet, or no agent for the
// request.
func IsAbsent(err error) bool {
	return IsNoHub(err) || IsUnknownAgent(err) || errors.As(err, new(FailedError))
}

// FailedError means that the hub could not start an agent of its settings, and will try again.
type FailedError struct{ Agent hub.AgentStatus }

// Error implements error.
func (e FailedError) Error() string {
	c := e.Agent.Child
	text := fmt.Sprintf("agent %s could not be started (the hub tries again every %s)", e.Agent.ID, config.FormatTime(c.Retry()))
	if c.LastError != "" { // only operators see it
		text += ": " + c.LastError
	}
	return text
}

// IsUnknownAgent reports whether an error is the refusal of a hub that has no agent for the request.
func IsUnknownAgent(err error) bool {
	f := &core.Fault{}
	return errors.As(err, &f) && (f.Code == core.CodeUnknownAgent || f.Code == core.CodeUnknownDomain)
}

// Retry repeats calls that fail because a hub or an agent is not running yet.
type Retry struct {
	limit  time.Duration
	until  time.Time
	absent func(error) bool
	// note is called once, with the first failure.
	note func(error)
}

// NewRetry returns a Retry that gives up after limit. absent reports which errors are retried;
// note, which may be nil, is called with the first of them.
func NewRetry(limit time.Duration, absent func(error) bool, note func(error)) *Retry {
	return &Retry{limit, time.Now().Add(limit), absent, note}
}

// Do calls do until it succeeds or fails for another reason, the time is up, or ctx ends. It
// returns what do returned last.
func (r *Retry) Do(ctx context.Context, do func() error) error {
	for pause := minDelay; ; pause = min(2*pause, maxDelay) {
		err := do()
		left := time.Until(r.until)
		switch {
		case err == nil || r.limit <= 0 || !r.absent(err):
			return err
		case left <= 0:
			return fmt.Errorf("gave up after %s: %w", config.FormatTime(r.limit), err)
		}
		if r.note != nil {
			r.note(err)
			r.note = nil
		}
		select {
		case <-time.After(min(pause, left)):
		case <-ctx.Done():
			return err
		}
	}
}

// ErrNotAccepted means that the server at the hub's address did not accept the agent in time.
var ErrNotAccepted = fmt.Errorf("no hub accepted the agent within %s", ResponseTimeout)
