package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// processes are the child processes of a bench. Each writes a ready file with its
// addresses.
type processes struct {
	dir      string
	started  int
	children []*child
}

type child struct {
	cmd   *exec.Cmd
	addrs addresses
	ended chan struct{} // closed when the process has ended; then err is read
	err   error
}

// start runs a program with more environment variables, and waits until it is ready.
func (p *processes) start(ctx context.Context, name, binary string, env []string, args ...string) (*child, error) {
	p.started++
	ready := filepath.Join(p.dir, fmt.Sprintf("%s-%d.json", name, p.started))
	cmd := exec.Command(binary, append(args, "--ready-file", ready)...) //nolint:gosec // chosen by the user
	cmd.Env = slices.Concat(ownEnviron(), env)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{cmd: cmd, ended: make(chan struct{})}
	go func() {
		c.err = cmd.Wait()
		close(c.ended)
	}()
	p.children = append(p.children, c)
	var err error
	if c.addrs, err = awaitReady(ctx, ready, c.ended); err != nil {
		return nil, fmt.Errorf("%s did not start: %w: %s", name, errors.Join(err, c.stop()), &stderr)
	}
	return c, nil
}

// ownEnviron returns the environment without settings of a hub.
func ownEnviron() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "DRAGOMAN_") })
}

// peer runs another process of a bench: one of peers.
func (p *processes) peer(ctx context.Context, name string, args ...string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return p.start(ctx, name, self, nil, append([]string{name}, args...)...)
}

// measured are the settings of a measured hub: no rate limits, no summaries, and nothing in
// the user's directories.
var measured = []string{
	"DRAGOMAN_PARALLAX_MESSAGES_PER_SECOND=0",
	"DRAGOMAN_PI_RATES_CLIENT=0", "DRAGOMAN_PI_RATES_ALL=0", "DRAGOMAN_PI_RATES_SESSION=0", "DRAGOMAN_PI_RATES_SERVER=0",
	"DRAGOMAN_PI_COMPACT_AT=0", "DRAGOMAN_PI_SESSION_DIR=",
}

// knownTo returns the measured settings that a binary knows: an older build may lack some.
func (b *bench) knownTo(ctx context.Context, binary string) ([]string, error) {
	if known, checked := b.known[binary]; checked {
		return known, nil
	}
	known := slices.Clone(measured)
	for {
		check := exec.CommandContext(ctx, binary, "check") //nolint:gosec // chosen by the user
		check.Env = slices.Concat(ownEnviron(), known)
		out, err := check.CombinedOutput()
		if err == nil {
			b.known[binary] = known
			return known, nil
		}
		before := len(known)
		known = slices.DeleteFunc(known, func(v string) bool {
			name, _, _ := strings.Cut(v, "=")
			return strings.Contains(string(out), "unknown variable "+name+":")
		})
		if len(known) == before {
			return nil, fmt.Errorf("%s check: %w (%s)", binary, err, strings.TrimSpace(string(out)))
		}
	}
}

// stop ends a child and waits for it.
func (c *child) stop() error {
	_ = c.cmd.Process.Signal(os.Interrupt) // it may have ended
	kill := time.AfterFunc(15*time.Second, func() { _ = c.cmd.Process.Kill() })
	defer kill.Stop()
	<-c.ended
	var status *exec.ExitError
	if errors.As(c.err, &status) {
		return nil // a failed exit is not a failed measurement
	}
	return c.err
}

// end stops all children, the last first.
func (p *processes) end() error {
	return p.stopFrom(0)
}

// stopFrom stops every child but the first n, the last first.
func (p *processes) stopFrom(n int) error {
	var errs []error
	for len(p.children) > n {
		last := len(p.children) - 1
		errs = append(errs, p.children[last].stop())
		p.children = p.children[:last]
	}
	return errors.Join(errs...)
}

// bench is one run of the benchmark.
type bench struct {
	options
	processes
	// shared are the hubs and relays that several rows use, by the hubs' settings.
	shared map[string][]server
	// known are the measured settings that a build knows, by its path.
	known map[string][]string
}

// server is a process that answers: a hub or the relay.
type server struct {
	name string
	*child
}

// hub starts the measured hub.
func (b *bench) hub(ctx context.Context, name string, env ...string) (*child, error) {
	return b.serve(ctx, name, b.hubBinary, slices.Concat(b.hubEnv, env))
}

func (b *bench) serve(ctx context.Context, name, binary string, env []string) (*child, error) {
	known, err := b.knownTo(ctx, binary)
	if err != nil {
		return nil, err
	}
	return b.start(ctx, name, binary, slices.Concat(known, env), "serve", "--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--pi-addr", "127.0.0.1:0",
		"--data-dir", filepath.Join(b.dir, fmt.Sprintf("%s-%d", name, b.started)), "--log-level", "warn")
}

// hubs starts the hub, and the one of another build if there is one.
func (b *bench) hubs(ctx context.Context, env ...string) ([]server, error) {
	hub, err := b.hub(ctx, "hub", env...)
	if err != nil {
		return nil, err
	}
	all := []server{{"hub", hub}}
	if b.baseBinary != "" {
		base, err := b.serve(ctx, "base", b.baseBinary, env)
		if err != nil {
			return nil, err
		}
		all = append(all, server{"base", base})
	}
	return all, nil
}

// servers starts the hubs and a relay, each with an agent of every dialect.
func (b *bench) servers(ctx context.Context, env ...string) ([]server, error) {
	all, err := b.hubs(ctx, env...)
	if err != nil {
		return nil, err
	}
	relay, err := b.peer(ctx, "relay")
	if err != nil {
		return nil, err
	}
	all = append(all, server{"relay", relay})
	return all, b.agentsFor(ctx, all, dialects()...)
}

// agentsFor has an agent of each dialect join every server.
func (b *bench) agentsFor(ctx context.Context, servers []server, dialects ...string) error {
	for _, s := range servers {
		for _, dialect := range dialects {
			_, err := b.peer(ctx, "agent", "-dialect", dialect, "-grpc-addr", s.addrs.GRPC, "-http-addr", s.addrs.HTTP)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// sharing returns servers that rows with the same settings share.
func (b *bench) sharing(ctx context.Context, env ...string) ([]server, error) {
	key := strings.Join(env, " ")
	if all, started := b.shared[key]; started {
		return all, nil
	}
	all, err := b.servers(ctx, env...)
	if err == nil {
		b.shared[key] = all
	}
	return all, err
}
