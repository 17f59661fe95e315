package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/agent"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/supervisor"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/edge"
)

// agentFlags are the flags of dragoman agent.
type agentFlags struct {
	dialect, speaks, name, id, model, secretFile, auth string
	env, capabilities, domains                         []string
	options                                            *[]string
	warm, concurrent                                   int
	to                                                 *hubFlags
	wait, stopTimeout                                  *time.Duration
}

func agentCommand(io Streams) *cobra.Command {
	var a agentFlags
	c := &cobra.Command{
		Use:   "agent --name N [--speaks S] [--dialect D] [flags] -- COMMAND [ARG...]",
		Short: "Turn a command into an agent",
		Long: `Join the hub as an agent that runs a command, until it is interrupted. The first interrupt
or SIGTERM lets the agent finish its tasks, within --stop-timeout, and take no others. A
second one stops it at once. Without tasks it leaves at the first one.

--speaks says what the command speaks on its stdin and stdout:

  text     it reads a request and writes the answer (the default). It is run for each
           request; a non-zero exit is a failure with the end of its stderr.
  editor   the Agent Client Protocol of editors, as Gemini CLI, Claude Code, Codex and
           Goose do.
  pi-rpc   what pi speaks with --mode rpc.
  native   events and calls of the hub, one JSON object per line.

A command that speaks editor, pi-rpc or native runs on and is started again when it ends.
Of the environment it gets PATH, HOME, LANG, TMPDIR and what --env names; a text command
gets all of it.

--dialect says how the agent joins the hub, and may be left out: a native command joins by
native alone, all others by coven. They may also join by parallax, acp or native: native
loses nothing of what the command says; parallax and acp have no approvals, which are denied,
and no questions to people.

A text command finds the rest of a request (data, attachments, history) as JSON in the
file named by the variable DRAGOMAN_REQUEST. Over Coven, Parallax and native it gets
a notice as a request with its topic and data.`,
		Example: `  # a text command
  dragoman agent --name shout -- tr a-z A-Z
  dragoman agent --name poet --capability verse --wait -- ./poet.sh   # before the hub is up

  # Gemini CLI
  dragoman agent --speaks editor --name gemini --env GEMINI_API_KEY -- gemini --acp

  # pi
  dragoman agent --speaks pi-rpc --name pi -- pi --mode rpc --no-session

  # a script of yours that speaks native, such as docs/examples/native/agent.py
  dragoman agent --speaks native --name parrot -- python3 docs/examples/native/agent.py`,
		Args: cobra.MinimumNArgs(1),
	}
	a.add(c, io)
	c.RunE = func(c *cobra.Command, args []string) error {
		switch {
		case !slices.Contains(config.Speaks, a.speaks):
			return unknownSpeaks(a.speaks, config.Speaks)
		case a.speaks != config.SpeaksText:
			e, err := a.entry(args)
			if err != nil {
				return err
			}
			return a.runSpeaking(c.Context(), io, e)
		}
		return a.runText(c, io, args)
	}
	return c
}

// add adds the flags to the command.
func (a *agentFlags) add(c *cobra.Command, io Streams) {
	f := c.Flags()
	f.SetInterspersed(false) // flags after the command belong to it, such as -e of sed
	f.StringVar(&a.dialect, "dialect", "", "`dialect` to join the hub in: coven, parallax, acp or native; default: native with --speaks native, else coven")
	f.StringVar(&a.speaks, "speaks", config.SpeaksText, "`dialect` of the command on its stdin and stdout: text, editor, pi-rpc or native")
	f.StringArrayVar(&a.env, "env", nil, "`variable` for the command, for --speaks editor, pi-rpc or native: NAME passes on yours, NAME=value sets one; may be repeated")
	f.StringVar(&a.auth, "auth", "", "`method` to authenticate with, for --speaks editor")
	a.options = optionFlag(f, "the command's sessions are set to, for --speaks editor")
	f.IntVar(&a.warm, "warm", 0, "`number` of processes that are kept ready, for --speaks pi-rpc")
	f.StringVar(&a.name, "name", "", "`name` of the agent")
	f.StringVar(&a.id, "id", "", "`id` of the agent; default: its name")
	f.StringVar(&a.model, "model", "", "`model` that the agent uses")
	f.StringSliceVar(&a.capabilities, "capability", nil, "`capability` of the agent; may be repeated")
	f.StringSliceVar(&a.domains, "domain", nil, "`domain` of the agent; may be repeated")
	f.IntVar(&a.concurrent, "concurrent", 1, "`number` of requests that are handled at a time")
	f.StringVar(&a.secretFile, "signing-secret", "", "`file` with the secret to sign messages with, for --dialect parallax")
	a.to = addHubFlags(f, io, "")
	f.StringVar(&a.to.grpc, "grpc-addr", "", "gRPC `address` of the hub, for --dialect coven; default: the hub is asked")
	a.wait = waitFlag(f, "a hub")
	a.stopTimeout = stopTimeoutFlag(f)
	completeFlag(c, "dialect", fixed(slices.Sorted(maps.Keys(service.Joins()))...))
	completeFlag(c, "speaks", fixed(config.Speaks...))
}

// entry returns a command that speaks a dialect as an agent of the settings.
func (a *agentFlags) entry(command []string) (config.Agent, error) {
	options, err := optionsOf(*a.options)
	e := config.Agent{
		Name: cmp.Or(a.id, a.name), Dialect: a.speaks, Process: config.Process{Command: command, Env: a.env},
		Capabilities: a.capabilities, Domains: a.domains, Model: a.model, MaxConcurrent: a.concurrent, Warm: a.warm, Auth: a.auth, Options: config.Options(options),
	}
	if mode := options[core.OptionMode]; mode != "" {
		e.Mode = mode
		delete(options, core.OptionMode)
	}
	if model := options[core.OptionModel]; model != "" {
		e.Model = model
		delete(options, core.OptionModel)
	}
	return e, err
}

// runText runs a text command as an agent of the hub.
func (a *agentFlags) runText(c *cobra.Command, io Streams, args []string) error {
	a.dialect = cmp.Or(a.dialect, coven.Name)
	if err := a.checkText(c, args); err != nil {
		return err
	}
	a.id = cmp.Or(a.id, a.name)
	card := core.Card{
		ID: core.AgentID(a.id), Name: a.name, Dialect: a.dialect, Capabilities: a.capabilities, Domains: a.domains, Model: a.model, MaxConcurrent: a.concurrent,
		Features: core.FeatureStreaming | core.FeatureCancellation | core.FeatureFiles,
	}
	if err := checkNames(card); err != nil {
		return err
	}
	at := a.to.address()
	var err error
	if at.SigningSecret, err = signingSecret(a.secretFile, a.dialect); err != nil {
		return err
	}
	err = a.stay(c.Context(), io, at, card, args)
	if errors.Is(err, client.ErrNotAccepted) {
		where, flag := at.URL, at.Named
		if a.to.grpc != "" {
			where, flag = a.to.grpc, "--grpc-addr"
		}
		return client.NotHub(where, flag, err.Error())
	}
	return err
}

// checkText returns a usage error for flags that do not fit a text command.
func (a *agentFlags) checkText(c *cobra.Command, args []string) error {
	if len(a.env) > 0 || a.auth != "" || len(*a.options) > 0 || a.warm > 0 {
		return usagef("--env, --auth, --option and --warm are for commands that speak a dialect: name it with --speaks")
	}
	if err := checkJoins(a.dialect); err != nil {
		return err
	}
	switch {
	case a.name == "" && a.id == "":
		return usagef("--name is missing: name the agent, before the command")
	case a.concurrent < 1:
		return usagef("--concurrent %d: want at least 1", a.concurrent)
	}
	if err := a.to.checkGRPC(); err != nil {
		return err
	}
	if err := checkNoGRPC(a.dialect, a.to); err != nil {
		return err
	}
	if err := refuseEmpty(c, "capability", "domain", "grpc-addr"); err != nil {
		return err
	}
	if err := checkWait(c, args, "the command"); err != nil {
		return err
	}
	if _, err := exec.LookPath(args[0]); err != nil {
		return usagef("the command cannot be run: %w", err)
	}
	return nil
}

// checkJoins returns a usage error for a dialect by which no text command joins.
func checkJoins(dialect string) error {
	joins := service.Joins()
	switch {
	case joins[dialect] != nil:
		return nil
	case slices.Contains(config.Speaks, dialect):
		return usagef("--dialect %q is what a command speaks, not how it joins: write --speaks %[1]s", dialect)
	}
	return usagef("--dialect %q: use %s", dialect, choice(dialect, slices.Sorted(maps.Keys(joins))))
}

// checkNoGRPC returns a usage error for a gRPC address where the agent does not join by it.
func checkNoGRPC(dialect string, to *hubFlags) error {
	if dialect != coven.Name && to.grpc != "" {
		return usagef("--dialect %s does not use --grpc-addr: use --hub", dialect)
	}
	return nil
}

// checkGRPC returns a usage error for a gRPC address beside several hubs.
func (h *hubFlags) checkGRPC() error {
	if h.grpc != "" && strings.Contains(h.hub, ",") {
		return usagef("--grpc-addr is that of one hub: leave it out, and each hub is asked for its own")
	}
	return nil
}

// stay is an agent of the hub, whose requests the command handles, until it is interrupted.
func (a *agentFlags) stay(ctx context.Context, io Streams, at client.Hub, card core.Card, command []string) error {
	connect := service.Joins()[a.dialect]
	log := newLog(io.Err, "info", "auto")
	guard := newGuard()
	defer guard.Close()
	ctx, stop := untilLeft(ctx, guard, *a.stopTimeout, log)
	defer stop()
	wire := &agent.DelayedLog{Handler: log.Handler(), Begun: new(atomic.Bool)}
	err := agent.Stay(ctx, log, *a.wait, atEach(at, func(ctx context.Context, at client.Hub, joined func()) error {
		return connect(ctx, at, card, agent.Handler(guarded(command, guard), io.Err, log), func(client.AskFunc) {
			log.Info("joined: ask it with 'dragoman ask "+quoted(a.id)+" ...'", "agent", a.id, "dialect", a.dialect, "hub", at.URL)
			wire.Begun.Store(true)
			joined()
		}, slog.New(wire))
	})...)
	if err == nil && wire.Begun.Load() {
		log.Info("left", "agent", a.id)
	}
	return err
}

// atEach returns what joins each of the hubs at an address.
func atEach(at client.Hub, join func(ctx context.Context, at client.Hub, joined func()) error) (all []func(context.Context, func()) error) {
	for _, hub := range at.Each() {
		all = append(all, func(ctx context.Context, joined func()) error { return join(ctx, hub, joined) })
	}
	return all
}

// checkNames returns a usage error for an invalid agent id or domain.
func checkNames(card core.Card) error {
	if err := core.CheckAgentID(card.ID); err != nil {
		return &exit{ExitUsage, errors.New(core.AsFault(err).Message)}
	}
	for _, d := range card.Domains {
		if _, err := core.ParseAddress("domain:" + d); err != nil || strings.ContainsAny(d, " \t\n") {
			return usagef("--domain %q: write words with dots between, such as family.calendar", d)
		}
	}
	return nil
}

// signingSecret returns the secret to sign with in a dialect; nil for none. The error is one of usage.
func signingSecret(path, dialect string) ([]byte, error) {
	secret, err := secretOf(path)
	if err == nil && secret != nil && dialect != parallax.Dialect {
		err = errors.New("--signing-secret: only Parallax agents sign")
	}
	if err != nil {
		return nil, &exit{ExitUsage, err}
	}
	return secret, nil
}

// secretOf reads a signing secret from a file, without its line end.
func secretOf(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	path, err := config.ExpandHome(path)
	if err != nil {
		return nil, fmt.Errorf("--signing-secret: %w", err)
	}
	secret, err := edge.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--signing-secret: %w", err)
	}
	if secret = bytes.TrimRight(secret, "\r\n"); len(secret) == 0 {
		return nil, fmt.Errorf("--signing-secret %s: the file is empty", path)
	}
	return secret, nil
}

// newGuard returns what ends the children of this program if it is killed; nil where that is not
// possible.
func newGuard() *supervisor.Guard {
	if self := service.SelfCommand(service.GuardCommand); self != nil {
		return supervisor.NewGuard(self...)
	}
	return nil
}

// guarded returns the program of a command line, whose processes the guard watches.
func guarded(args []string, guard *supervisor.Guard) agent.Program {
	p := agent.ProgramOf(args)
	plain := p.Command
	p.Command = func(ctx context.Context) (*exec.Cmd, error) {
		cmd, err := plain(ctx)
		if err == nil {
			cmd.Env = guard.Mark(cmd.Env)
		}
		return cmd, err
	}
	p.Started = guard.Watch
	return p
}
