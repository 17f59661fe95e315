package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

func benchCommand(io streams) *cobra.Command {
	var asJSON bool
	var o benchOptions
	c := &cobra.Command{
		Use: "bench", Short: "Measure the hub against a plain relay", Args: cobra.NoArgs,
		Long: `Measure what the hub costs. A pi client over WebSocket asks a Coven agent over gRPC,
each in a process of its own: once through the hub, once through a plain relay that
is made of the same two libraries and nothing else. Both take turns, so that a
machine that slows down slows down both; the ratio says what the hub adds.

It uses free ports of this machine and a temporary directory, and takes about a
minute.`,
	}
	f := c.Flags()
	f.BoolVar(&asJSON, "json", false, "print JSON")
	f.IntVar(&o.rounds, "rounds", 5, "`number` of turns that hub and relay take")
	f.DurationVar(&o.each, "time", 2*time.Second, "`time` that one turn lasts")
	f.IntVar(&o.agents, "agents", 200, "`number` of idle agents that are weighed")
	c.AddCommand(benchAgentCommand(io), benchRelayCommand(io), benchCrowdCommand(io))
	c.RunE = func(c *cobra.Command, _ []string) error {
		ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		r, err := runBench(ctx, o, io)
		switch {
		case ctx.Err() != nil:
			return &exit{exitInterrupted, errLeft}
		case err != nil:
			return err
		}
		if asJSON {
			return printJSON(io.out, r)
		}
		return r.print(io.out)
	}
	return c
}

type benchOptions struct {
	rounds int
	each   time.Duration
	agents int
}

// benchResult is everything that was measured.
type benchResult struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	CPUs    int    `json:"cpus"`
	// Single is one question of one chunk after the other, Parallel 64 at a time,
	// Burst answers of 5,000 chunks of 64 bytes, 16 at a time.
	Single   comparison `json:"single"`
	Parallel comparison `json:"parallel"`
	Burst    comparison `json:"burst"`
	// WireMultiple is how many bytes a pi client gets for a byte of text in Burst.
	WireMultiple float64 `json:"wire_multiple"`
	// Idle is how many bytes an idle agent keeps resident, by dialect.
	Idle map[string]int64 `json:"idle_bytes"`
	// Start is the time from the start of the process to its listening.
	Start series `json:"start"`
}

// The shape of the load.
const (
	benchParallel    = 64
	benchBurstChunks = 5000
	benchBurstAtOnce = 16
	benchChunk       = 64
)

// runBench starts the processes, measures, and ends them.
func runBench(ctx context.Context, o benchOptions, io streams) (r benchResult, err error) {
	// The garbage of the client is not what is measured, and the hub's pays for fifteen
	// frames where the relay's pays for two.
	defer debug.SetGCPercent(debug.SetGCPercent(1000))
	dir, err := os.MkdirTemp("", "dragoman-bench-*")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p := &processes{dir: dir, err: io.err}
	defer func() { err = errors.Join(err, p.end()) }()
	r = benchResult{Version: version, Go: runtime.Version(), CPUs: runtime.NumCPU(), Idle: map[string]int64{}}

	fmt.Fprintln(io.err, "starting the hub...")
	if r.Start, err = p.timeStarts(ctx, o.rounds); err != nil {
		return r, err
	}
	hub, err := p.hub(ctx, "hub")
	if err != nil {
		return r, err
	}
	relay, err := p.relay(ctx)
	if err != nil {
		return r, err
	}
	for _, grpc := range []string{hub.addrs.GRPC, relay.addrs.GRPC} {
		if _, err := p.start(ctx, "agent", "bench", "agent", "--grpc-addr", grpc); err != nil {
			return r, err
		}
	}
	asks, closeBoth, err := connectBench(ctx, hub.addrs, relay.addrs)
	if err != nil {
		return r, err
	}
	for _, m := range []struct {
		name           string
		into           *comparison
		atOnce, chunks int
	}{
		{"one at a time", &r.Single, 1, 1},
		{fmt.Sprintf("%d at a time", benchParallel), &r.Parallel, benchParallel, 1},
		{fmt.Sprintf("answers of %d chunks, %d at a time", benchBurstChunks, benchBurstAtOnce), &r.Burst, benchBurstAtOnce, benchBurstChunks},
	} {
		fmt.Fprintf(io.err, "asking: %s...\n", m.name)
		if *m.into, err = takeTurns(ctx, o, asks, m.atOnce, m.chunks); err != nil {
			return r, errors.Join(fmt.Errorf("%s: %w", m.name, err), closeBoth())
		}
	}
	r.WireMultiple = asks.hub.multiple()
	if err := closeBoth(); err != nil {
		return r, err
	}
	fmt.Fprintln(io.err, "weighing idle agents...")
	for dialect := range joins() {
		if r.Idle[dialect], err = p.weigh(ctx, dialect, o.agents); err != nil {
			return r, err
		}
	}
	return r, nil
}

// processes are the children of a bench. Each tells in a ready file where it
// listens, or that it is there.
type processes struct {
	dir      string
	err      interface{ Write([]byte) (int, error) }
	children []*child
}

type child struct {
	cmd   *exec.Cmd
	addrs Addresses
}

// start runs this program again with the arguments and waits until it is ready.
func (p *processes) start(ctx context.Context, name string, args ...string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ready := filepath.Join(p.dir, fmt.Sprintf("%s-%d.json", name, len(p.children)))
	cmd := exec.Command(self, append(args, "--ready-file", ready)...) //nolint:gosec // it is this very program
	cmd.Env = append(withoutSettings(os.Environ()), measured...)
	said := &tail{also: discardAll{}}
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{cmd: cmd}
	p.children = append(p.children, c)
	if c.addrs, err = awaitReady(ctx, ready); err != nil {
		return nil, fmt.Errorf("%s did not start: %w: %s", name, err, said.text())
	}
	return c, nil
}

// measured are the settings of a hub that is measured: as many commands as can be, no
// summaries of what they said, and nothing on the disk of the user.
var measured = []string{
	envPrefix + "PI_RATES_ALL=0", envPrefix + "PI_RATES_SESSION=0", envPrefix + "PI_RATES_SERVER=0", envPrefix + "PI_COMPACT_AT=0", envPrefix + "PI_SESSION_DIR=",
}

// withoutSettings keeps the user's own hub out of what is measured.
func withoutSettings(environ []string) []string {
	var kept []string
	for _, v := range environ {
		if !strings.HasPrefix(v, envPrefix) {
			kept = append(kept, v)
		}
	}
	return kept
}

type discardAll struct{}

// Write implements io.Writer.
func (discardAll) Write(b []byte) (int, error) { return len(b), nil }

func (p *processes) hub(ctx context.Context, name string) (*child, error) {
	return p.start(ctx, name, "serve", "--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--pi-addr", "127.0.0.1:0",
		"--data-dir", filepath.Join(p.dir, fmt.Sprintf("%s-%d", name, len(p.children))), "--log-level", "warn")
}

func (p *processes) relay(ctx context.Context) (*child, error) {
	return p.start(ctx, "relay", "bench", "relay")
}

// stop ends a child and waits for it.
func (c *child) stop() error {
	if c.cmd.ProcessState != nil {
		return nil
	}
	_ = c.cmd.Process.Signal(os.Interrupt) // it may have ended
	kill := time.AfterFunc(5*time.Second, func() { _ = c.cmd.Process.Kill() })
	defer kill.Stop()
	err := c.cmd.Wait()
	var status *exec.ExitError
	if errors.As(err, &status) {
		return nil // how a child ends is not what is measured
	}
	return err
}

// end stops all children, the last first.
func (p *processes) end() error {
	var errs []error
	for i := len(p.children) - 1; i >= 0; i-- {
		errs = append(errs, p.children[i].stop())
	}
	return errors.Join(errs...)
}

// timeStarts measures how long a hub with an empty journal takes to listen.
func (p *processes) timeStarts(ctx context.Context, n int) (series, error) {
	var s series
	for range n {
		began := time.Now()
		c, err := p.hub(ctx, "start")
		if err != nil {
			return s, err
		}
		s.add(time.Since(began))
		if err := c.stop(); err != nil {
			return s, err
		}
	}
	s.sort()
	return s, nil
}

// weigh measures how much resident memory an idle agent costs a fresh hub.
func (p *processes) weigh(ctx context.Context, dialect string, n int) (int64, error) {
	hub, err := p.hub(ctx, "idle")
	if err != nil {
		return 0, err
	}
	defer hub.stop() //nolint:errcheck // end stops it too
	// The first agents pay for what is made once.
	few, err := p.crowd(ctx, hub, dialect, "few", n/4)
	if err != nil {
		return 0, err
	}
	before, err := resident(hub.cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	many, err := p.crowd(ctx, hub, dialect, "many", n)
	if err != nil {
		return 0, err
	}
	after, err := resident(hub.cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	return (after - before) / int64(n), errors.Join(many.stop(), few.stop())
}

func (p *processes) crowd(ctx context.Context, hub *child, dialect, name string, n int) (*child, error) {
	return p.start(ctx, name, "bench", "crowd", "--dialect", dialect, "--prefix", name, "--count", fmt.Sprint(n),
		"--grpc-addr", hub.addrs.GRPC, "--hub", "http://"+hub.addrs.HTTP)
}
