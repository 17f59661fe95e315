package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os/exec"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/core"
)

func agentCommand(io streams) *cobra.Command {
	var dialect, name, id, model, secretFile string
	var able, domains []string
	var concurrent int
	c := &cobra.Command{
		Use:   "agent --dialect D --name N [flags] -- COMMAND [ARG...]",
		Short: "Make an agent of any command",
		Long: `Join the hub as an agent that answers every request by running a command: the
request on its stdin, its stdout streamed back as text, a non-zero exit as a
failure with the end of its stderr.

  dragoman agent --dialect parallax --name shout -- tr a-z A-Z
  dragoman agent --dialect coven --name poet --capability verse -- ./poet.sh
  dragoman agent --wait --dialect acp --name bell -- ./bell.sh     # before the hub is up

What a request has beside its text (data, attachments, history) stands as JSON in
the file that the variable DRAGOMAN_REQUEST names. A notice comes to Coven and
Parallax agents as a request of its topic and data.`,
		Args: cobra.MinimumNArgs(1),
	}
	f := c.Flags()
	f.SetInterspersed(false) // what stands behind the command is the command's, such as -e of sed
	f.StringVar(&dialect, "dialect", "", "`dialect` to join in: coven, parallax or acp")
	f.StringVar(&name, "name", "", "`name` of the agent")
	f.StringVar(&id, "id", "", "`id` of the agent; default: its name")
	f.StringVar(&model, "model", "", "`model` that it says it uses")
	f.StringSliceVar(&able, "capability", nil, "`capability` that it declares; may be repeated")
	f.StringSliceVar(&domains, "domain", nil, "`domain` that it declares; may be repeated")
	f.IntVar(&concurrent, "concurrent", 1, "`number` of requests that it answers at once")
	f.StringVar(&secretFile, "signing-secret", "", "`file` with the secret that messages are signed with, for --dialect parallax")
	to := hubFlags(f)
	f.StringVar(&to.grpc, "grpc-addr", "", "gRPC `address` of the hub, for --dialect coven; default: as the hub says")
	wait := waitFlag(f, "a hub")
	c.RunE = func(c *cobra.Command, args []string) error {
		connect, ok := joins()[dialect]
		switch {
		case dialect == "":
			return &exit{exitUsage, errors.New("--dialect is missing: write coven, parallax or acp, before the command")}
		case !ok:
			return &exit{exitUsage, fmt.Errorf("--dialect %q: use coven, parallax or acp", dialect)}
		case name == "" && id == "":
			return &exit{exitUsage, errors.New("--name is missing: name the agent, before the command")}
		case concurrent < 1:
			return &exit{exitUsage, fmt.Errorf("--concurrent %d: want at least 1", concurrent)}
		}
		if dialect != coven.Name && to.grpc != "" {
			return &exit{exitUsage, fmt.Errorf("--grpc-addr is not where --dialect %s joins: use --hub", dialect)}
		}
		if err := refuseEmpty(c, "capability", "domain", "grpc-addr"); err != nil {
			return err
		}
		if err := checkWait(c, args, "the command"); err != nil {
			return err
		}
		if _, err := exec.LookPath(args[0]); err != nil {
			return &exit{exitUsage, fmt.Errorf("the command cannot be run: %w", err)}
		}
		if id == "" {
			id = name
		}
		card := core.Card{
			ID: core.AgentID(id), Name: name, Dialect: dialect, Capabilities: able, Domains: domains, Model: model, MaxConcurrent: concurrent,
			Features: core.FeatureStreaming | core.FeatureCancellation,
		}
		if err := checkNames(card); err != nil {
			return err
		}
		at := to.place()
		var err error
		if at.secret, err = secretOf(secretFile); err != nil || at.secret != nil && dialect != parallax.Dialect {
			return &exit{exitUsage, cmp.Or(err, errors.New("--signing-secret: only Parallax agents sign"))}
		}
		ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		log := newLog(io.err, "info", "auto")
		wire := &later{Handler: log.Handler(), begun: new(atomic.Bool)}
		err = stay(ctx, log, *wait, func(ctx context.Context, joined func()) error {
			return connect(ctx, at, card, commandHandler(args, io.err, log), func(asker) {
				log.Info("joined: ask it with 'dragoman ask "+quoted(id)+" ...'", "agent", id, "dialect", dialect)
				wire.begun.Store(true)
				joined()
			}, slog.New(wire))
		})
		if err == nil {
			log.Info("left", "agent", id)
		}
		if errors.Is(err, errSilent) {
			where, flag := to.hub, to.named()
			if to.grpc != "" {
				where, flag = to.grpc, "--grpc-addr"
			}
			return elsewhere(where, flag, err.Error())
		}
		return err
	}
	return c
}

// checkNames makes a usage error of an id that no agent can have, and of a domain
// that nobody would ask for.
func checkNames(card core.Card) error {
	if err := core.CheckAgentID(card.ID); err != nil {
		return &exit{exitUsage, errors.New(core.AsFault(err).Message)}
	}
	for _, d := range card.Domains {
		if _, err := core.ParseAddress("domain:" + d); err != nil || strings.ContainsAny(d, " \t\n") {
			return &exit{exitUsage, fmt.Errorf("--domain %q: write words with dots between, such as family.calendar", d)}
		}
	}
	return nil
}

// later is a log that says nothing until it has begun: what a dialect makes of
// frames of another server is told in one line when it gives up.
type later struct {
	slog.Handler
	begun *atomic.Bool
}

// Enabled implements slog.Handler.
func (l *later) Enabled(ctx context.Context, level slog.Level) bool {
	return l.begun.Load() && l.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (l *later) WithAttrs(all []slog.Attr) slog.Handler {
	return &later{l.Handler.WithAttrs(all), l.begun}
}

// WithGroup implements slog.Handler.
func (l *later) WithGroup(name string) slog.Handler {
	return &later{l.Handler.WithGroup(name), l.begun}
}

// errSilent says that whoever answers at the address of the hub is not what an agent
// can join.
var errSilent = fmt.Errorf("nobody took the agent in within %s", patience)

// inTime lets connect join within the patience that there is for what should be
// quick: at another door of the hub, or of another server, nobody may ever answer.
func inTime(ctx context.Context, connect func(ctx context.Context, joined func()) error, joined func()) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(patience, func() { cancel(errSilent) })
	defer timer.Stop()
	err := connect(ctx, func() {
		timer.Stop()
		joined()
	})
	if errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	return err
}

// The pace at which an agent comes back after its connection was lost.
const (
	backoffLeast = time.Second
	backoffMost  = 30 * time.Second
)

// stay joins, and joins again when the connection is lost, at a growing pace. Only a
// connection that held begins the pace anew: a hub that takes the agent in and drops
// it at once is not run down. It waits up to patience for a hub that is not there yet.
// It returns an error when it never got in, or when the hub turned it away.
func stay(ctx context.Context, log *slog.Logger, patience time.Duration, connect func(ctx context.Context, joined func()) error) error {
	in, wait := false, backoffLeast
	arrival := newPatient(patience, noHub, func(err error) {
		log.Info("waiting for a hub", "for", patience.String(), "reason", err.Error())
	})
	for {
		var since time.Time
		join := func() error { return inTime(ctx, connect, func() { in, since = true, time.Now() }) }
		var err error
		if in {
			err = join()
		} else {
			err = arrival.try(ctx, join)
		}
		var turned *core.Fault
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &turned) && (turned.Peer == parallax.Replaced || turned.Peer == acp.Replaced):
			return errors.New(turned.Message)
		case in && errors.As(err, &turned) && turned.Code == core.CodeConflict:
			// The hub may not know yet that the connection before is lost.
		case errors.As(err, &turned):
			return errors.New(turned.Message)
		case !in && err != nil && !errors.Is(err, io.EOF):
			return err
		}
		if !since.IsZero() && time.Since(since) >= backoffMost {
			wait = backoffLeast
		}
		pause := wait/2 + rand.N(wait/2)
		reason := "the hub ended it in good order"
		if err != nil {
			reason = err.Error()
		}
		log.Warn("the connection has ended: joining again", "reason", reason, "in", pause.String())
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
		wait = min(2*wait, backoffMost)
	}
}
