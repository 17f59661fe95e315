package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/agent"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
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
	addrs service.Addresses
}

// start runs a program, by default this one, with more environment variables, and waits
// until it is ready.
func (p *processes) start(ctx context.Context, name, binary string, env []string, args ...string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p.started++
	ready := filepath.Join(p.dir, fmt.Sprintf("%s-%d.json", name, p.started))
	cmd := exec.Command(cmp.Or(binary, self), append(args, "--ready-file", ready)...) //nolint:gosec // chosen by the user
	cmd.Env = slices.Concat(config.WithoutVariables(os.Environ()), env)
	stderr := &agent.Tail{Also: io.Discard}
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{cmd: cmd}
	p.children = append(p.children, c)
	if c.addrs, err = service.AwaitReady(ctx, ready); err != nil {
		return nil, fmt.Errorf("%s did not start: %w: %s", name, err, stderr.Text())
	}
	return c, nil
}

// peer runs a hidden command of this program.
func (p *processes) peer(ctx context.Context, name string, args ...string) (*child, error) {
	return p.start(ctx, name, "", nil, append([]string{"bench", name}, args...)...)
}

// measured are the settings of a measured hub: no rate limits, no summaries, and nothing in
// the user's directories.
var measured = []string{
	config.VariablePrefix + "PARALLAX_MESSAGES_PER_SECOND=0",
	config.VariablePrefix + "PI_RATES_CLIENT=0", config.VariablePrefix + "PI_RATES_ALL=0", config.VariablePrefix + "PI_RATES_SESSION=0", config.VariablePrefix + "PI_RATES_SERVER=0", config.VariablePrefix + "PI_COMPACT_AT=0", config.VariablePrefix + "PI_SESSION_DIR=",
}

// knownTo returns the measured settings that a binary knows: another build may lack some.
func (b *run) knownTo(ctx context.Context, binary string) ([]string, error) {
	if binary == "" {
		return measured, nil
	}
	if known, checked := b.known[binary]; checked {
		return known, nil
	}
	known := slices.Clone(measured)
	for {
		check := exec.CommandContext(ctx, binary, "check") //nolint:gosec // chosen by the user
		check.Env = slices.Concat(config.WithoutVariables(os.Environ()), known)
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
	if c.cmd.ProcessState != nil {
		return nil
	}
	_ = c.cmd.Process.Signal(os.Interrupt) // it may have ended
	kill := time.AfterFunc(15*time.Second, func() { _ = c.cmd.Process.Kill() })
	defer kill.Stop()
	err := c.cmd.Wait()
	var status *exec.ExitError
	if errors.As(err, &status) {
		return nil // a failed exit is not a failed measurement
	}
	return err
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

// run is one run of the benchmark.
type run struct {
	Options
	processes
	// shared are the hubs and relays that several rows use, by the hubs' settings.
	shared map[string][]server
	// known are the settings that other builds know, by path.
	known map[string][]string
}

// server is a process that answers: a hub or the relay.
type server struct {
	name string
	*child
}

// hub starts the measured hub.
func (b *run) hub(ctx context.Context, name string, env ...string) (*child, error) {
	return b.serve(ctx, name, b.HubBinary, slices.Concat(b.HubEnv, env))
}

func (b *run) serve(ctx context.Context, name, binary string, env []string) (*child, error) {
	known, err := b.knownTo(ctx, binary)
	if err != nil {
		return nil, err
	}
	return b.start(ctx, name, binary, slices.Concat(known, env), "serve", "--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--pi-addr", "127.0.0.1:0",
		"--data-dir", filepath.Join(b.dir, fmt.Sprintf("%s-%d", name, b.started)), "--log-level", "warn")
}

// hubs starts the hub, and the one of another build if there is one.
func (b *run) hubs(ctx context.Context, env ...string) ([]server, error) {
	hub, err := b.hub(ctx, "hub", env...)
	if err != nil {
		return nil, err
	}
	all := []server{{"hub", hub}}
	if b.BaseBinary != "" {
		base, err := b.serve(ctx, "base", b.BaseBinary, env)
		if err != nil {
			return nil, err
		}
		all = append(all, server{"base", base})
	}
	return all, nil
}

// servers starts the hubs and a relay, each with an agent of every dialect.
func (b *run) servers(ctx context.Context, env ...string) ([]server, error) {
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
func (b *run) agentsFor(ctx context.Context, servers []server, dialects ...string) error {
	for _, s := range servers {
		for _, dialect := range dialects {
			_, err := b.peer(ctx, "agent", "--dialect", dialect, "--grpc-addr", s.addrs.GRPC, "--hub", "http://"+s.addrs.HTTP)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// sharing returns servers that rows with the same settings share.
func (b *run) sharing(ctx context.Context, env ...string) ([]server, error) {
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
