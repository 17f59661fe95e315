package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/agent"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/supervisor"
	"github.com/dragoman-hub/dragoman/core"
)

func agentCommand(io Streams) *cobra.Command {
	var dialect, speaks, name, id, model, secretFile, auth string
	var env []string
	var warm int
	var capabilities, domains []string
	var concurrent int
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
native, all others by coven. A text command may also join by parallax, acp or native.

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
	f := c.Flags()
	f.SetInterspersed(false) // flags after the command belong to it, such as -e of sed
	f.StringVar(&dialect, "dialect", "", "`dialect` to join the hub in: coven, parallax, acp or native; default: native with --speaks native, else coven")
	f.StringVar(&speaks, "speaks", config.SpeaksText, "`dialect` of the command on its stdin and stdout: text, editor, pi-rpc or native")
	f.StringArrayVar(&env, "env", nil, "`variable` for the command, for --speaks editor, pi-rpc or native: NAME passes on yours, NAME=value sets one; may be repeated")
	f.StringVar(&auth, "auth", "", "`method` to authenticate with, for --speaks editor")
	f.IntVar(&warm, "warm", 0, "`number` of processes that are kept ready, for --speaks pi-rpc")
	f.StringVar(&name, "name", "", "`name` of the agent")
	f.StringVar(&id, "id", "", "`id` of the agent; default: its name")
	f.StringVar(&model, "model", "", "`model` that the agent uses")
	f.StringSliceVar(&capabilities, "capability", nil, "`capability` of the agent; may be repeated")
	f.StringSliceVar(&domains, "domain", nil, "`domain` of the agent; may be repeated")
	f.IntVar(&concurrent, "concurrent", 1, "`number` of requests that are handled at a time")
	f.StringVar(&secretFile, "signing-secret", "", "`file` with the secret to sign messages with, for --dialect parallax")
	to := addHubFlags(f, io, "")
	f.StringVar(&to.grpc, "grpc-addr", "", "gRPC `address` of the hub, for --dialect coven; default: the hub is asked")
	wait := waitFlag(f, "a hub")
	stopTimeout := stopTimeoutFlag(f)
	completeFlag(c, "dialect", fixed(slices.Sorted(maps.Keys(service.Joins()))...))
	completeFlag(c, "speaks", fixed(config.Speaks...))
	c.RunE = func(c *cobra.Command, args []string) error {
		if !slices.Contains(config.Speaks, speaks) {
			return usagef("--speaks %q: use %s", speaks, choice(speaks, config.Speaks))
		}
		if speaks != config.SpeaksText {
			e := config.Agent{
				Name: cmp.Or(id, name), Dialect: speaks, Process: config.Process{Command: args, Env: env},
				Capabilities: capabilities, Domains: domains, Model: model, MaxConcurrent: concurrent, Warm: warm, Auth: auth,
			}
			return runSpeaking(c.Context(), io, e, name, dialect, to, *wait, *stopTimeout)
		}
		dialect = cmp.Or(dialect, coven.Name)
		connect, ok := service.Joins()[dialect]
		switch {
		case len(env) > 0 || auth != "" || warm > 0:
			return usagef("--env, --auth and --warm are for commands that speak a dialect: name it with --speaks")
		case !ok && slices.Contains(config.Speaks, dialect):
			return usagef("--dialect %q is what a command speaks, not how it joins: write --speaks %[1]s", dialect)
		case !ok:
			return usagef("--dialect %q: use %s", dialect, choice(dialect, slices.Sorted(maps.Keys(service.Joins()))))
		case name == "" && id == "":
			return usagef("--name is missing: name the agent, before the command")
		case concurrent < 1:
			return usagef("--concurrent %d: want at least 1", concurrent)
		}
		if to.grpc != "" && strings.Contains(to.hub, ",") {
			return usagef("--grpc-addr is that of one hub: leave it out, and each hub is asked for its own")
		}
		if dialect != coven.Name && to.grpc != "" {
			return usagef("--dialect %s does not use --grpc-addr: use --hub", dialect)
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
		if id == "" {
			id = name
		}
		card := core.Card{
			ID: core.AgentID(id), Name: name, Dialect: dialect, Capabilities: capabilities, Domains: domains, Model: model, MaxConcurrent: concurrent,
			Features: core.FeatureStreaming | core.FeatureCancellation,
		}
		if err := checkNames(card); err != nil {
			return err
		}
		at := to.address()
		var err error
		if at.SigningSecret, err = secretOf(secretFile); err != nil || at.SigningSecret != nil && dialect != parallax.Dialect {
			return &exit{ExitUsage, cmp.Or(err, errors.New("--signing-secret: only Parallax agents sign"))}
		}
		log := newLog(io.Err, "info", "auto")
		guard := newGuard()
		defer guard.Close()
		ctx, stop := untilLeft(c.Context(), guard, *stopTimeout, log)
		defer stop()
		wire := &agent.DelayedLog{Handler: log.Handler(), Begun: new(atomic.Bool)}
		err = agent.Stay(ctx, log, *wait, atEach(at, func(ctx context.Context, at client.Hub, joined func()) error {
			return connect(ctx, at, card, agent.Handler(guarded(args, guard), io.Err, log), func(client.AskFunc) {
				log.Info("joined: ask it with 'dragoman ask "+quoted(id)+" ...'", "agent", id, "dialect", dialect, "hub", at.URL)
				wire.Begun.Store(true)
				joined()
			}, slog.New(wire))
		})...)
		if err == nil && wire.Begun.Load() {
			log.Info("left", "agent", id)
		}
		if errors.Is(err, client.ErrNotAccepted) {
			where, flag := to.hub, to.named()
			if to.grpc != "" {
				where, flag = to.grpc, "--grpc-addr"
			}
			return client.NotHub(where, flag, err.Error())
		}
		return err
	}
	return c
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

// secretOf reads a signing secret from a file, without its line end.
func secretOf(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	path, err := config.ExpandHome(path)
	if err != nil {
		return nil, fmt.Errorf("--signing-secret: %w", err)
	}
	secret, err := os.ReadFile(path)
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
