package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// The pace at which a command looks for who is not there yet, and for how long it does
// where --wait does not say.
const (
	waitLeast = 100 * time.Millisecond
	waitMost  = 2 * time.Second
)

// absence is an error of a hub that is not there, and may come.
type absence struct{ error }

// Unwrap returns what went wrong.
func (a absence) Unwrap() error { return a.error }

// IsNoHub reports whether an error says that no hub is there.
func IsNoHub(err error) bool {
	var a absence
	return errors.As(err, &a) || errors.Is(err, ErrNotTakenIn)
}

// IsNobodyYet reports whether an error says that no hub is there, or nobody on it whom a
// request is for.
func IsNobodyYet(err error) bool {
	f := &core.Fault{}
	return IsNoHub(err) || errors.As(err, &f) && (f.Code == core.CodeUnknownAgent || f.Code == core.CodeUnknownDomain)
}

// Retry tries again for a while what failed because somebody is not there yet.
type Retry struct {
	whole  time.Duration
	until  time.Time
	absent func(error) bool
	// note is told once, of the first failure.
	note func(error)
}

func NewRetry(whole time.Duration, absent func(error) bool, note func(error)) *Retry {
	return &Retry{whole, time.Now().Add(whole), absent, note}
}

// Do calls do until it comes to something else than an absence, time is up, or ctx
// ends. It returns what do returned last.
func (p *Retry) Do(ctx context.Context, do func() error) error {
	for pause := waitLeast; ; pause = min(2*pause, waitMost) {
		err := do()
		left := time.Until(p.until)
		switch {
		case err == nil || p.whole <= 0 || !p.absent(err):
			return err
		case left <= 0:
			return fmt.Errorf("waited %s in vain: %w", p.whole, err)
		}
		if p.note != nil {
			p.note(err)
			p.note = nil
		}
		select {
		case <-time.After(min(pause, left)):
		case <-ctx.Done():
			return err
		}
	}
}

// ErrNotTakenIn says that whoever answers at the address of the hub is not what an agent
// can join.
var ErrNotTakenIn = fmt.Errorf("nobody took the agent in within %s", Patience)
