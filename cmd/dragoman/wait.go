package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dragoman-hub/dragoman/core"
)

// The pace at which a command looks for who is not there yet, and for how long it does
// where --wait does not say.
const (
	waitLeast = 100 * time.Millisecond
	waitMost  = 2 * time.Second
	waitUsual = "5m"
)

// waitFlag declares --wait of a command that can wait for somebody.
func waitFlag(fs *pflag.FlagSet, whom string) *time.Duration {
	d := timeFlag(fs, "wait", 0, "wait for "+whom+" that is not there yet, for at most so much `time` (--wait=30s)")
	fs.Lookup("wait").NoOptDefVal = waitUsual
	return d
}

// checkWait makes a usage error of a time behind a blank, which would be an argument.
func checkWait(c *cobra.Command, args []string, what string) error {
	if _, isTime := readTime(args[0]); isTime && c.Flags().Changed("wait") {
		return &exit{exitUsage, fmt.Errorf("%s would be %s: write --wait=%[1]s", args[0], what)}
	}
	return nil
}

// absence is an error of a hub that is not there, and may come.
type absence struct{ error }

// Unwrap returns what went wrong.
func (a absence) Unwrap() error { return a.error }

// noHub reports whether an error says that no hub is there.
func noHub(err error) bool {
	var a absence
	return errors.As(err, &a) || errors.Is(err, errSilent)
}

// nobodyYet reports whether an error says that no hub is there, or nobody on it whom a
// request is for.
func nobodyYet(err error) bool {
	f := &core.Fault{}
	return noHub(err) || errors.As(err, &f) && (f.Code == core.CodeUnknownAgent || f.Code == core.CodeUnknownDomain)
}

// patient tries again for a while what failed because somebody is not there yet.
type patient struct {
	whole  time.Duration
	until  time.Time
	absent func(error) bool
	// note is told once, of the first failure.
	note func(error)
}

func newPatient(whole time.Duration, absent func(error) bool, note func(error)) *patient {
	return &patient{whole, time.Now().Add(whole), absent, note}
}

// try calls do until it comes to something else than an absence, time is up, or ctx
// ends. It returns what do returned last.
func (p *patient) try(ctx context.Context, do func() error) error {
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
