package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/agent"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
)

func agentCommand(io Streams) *cobra.Command {
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

The rest of a request (data, attachments, history) is JSON in the file that the
variable DRAGOMAN_REQUEST names. Coven and Parallax agents get a notice as a request
with its topic and data.`,
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
	f.IntVar(&concurrent, "concurrent", 1, "`number` of requests that it handles at a time")
	f.StringVar(&secretFile, "signing-secret", "", "`file` with the secret that messages are signed with, for --dialect parallax")
	to := hubFlags(f)
	f.StringVar(&to.grpc, "grpc-addr", "", "gRPC `address` of the hub, for --dialect coven; default: as the hub says")
	wait := waitFlag(f, "a hub")
	c.RunE = func(c *cobra.Command, args []string) error {
		connect, ok := service.Joins()[dialect]
		switch {
		case dialect == "":
			return &exit{ExitUsage, errors.New("--dialect is missing: write coven, parallax or acp, before the command")}
		case !ok:
			return &exit{ExitUsage, fmt.Errorf("--dialect %q: use coven, parallax or acp", dialect)}
		case name == "" && id == "":
			return &exit{ExitUsage, errors.New("--name is missing: name the agent, before the command")}
		case concurrent < 1:
			return &exit{ExitUsage, fmt.Errorf("--concurrent %d: want at least 1", concurrent)}
		}
		if dialect != coven.Name && to.grpc != "" {
			return &exit{ExitUsage, fmt.Errorf("--dialect %s does not use --grpc-addr: use --hub", dialect)}
		}
		if err := refuseEmpty(c, "capability", "domain", "grpc-addr"); err != nil {
			return err
		}
		if err := checkWait(c, args, "the command"); err != nil {
			return err
		}
		if _, err := exec.LookPath(args[0]); err != nil {
			return &exit{ExitUsage, fmt.Errorf("the command cannot be run: %w", err)}
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
		if at.SigningSecret, err = secretOf(secretFile); err != nil || at.SigningSecret != nil && dialect != parallax.Dialect {
			return &exit{ExitUsage, cmp.Or(err, errors.New("--signing-secret: only Parallax agents sign"))}
		}
		ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		log := newLog(io.Err, "info", "auto")
		wire := &agent.DelayedLog{Handler: log.Handler(), Begun: new(atomic.Bool)}
		err = agent.Stay(ctx, log, *wait, func(ctx context.Context, joined func()) error {
			return connect(ctx, at, card, agent.Handler(args, io.Err, log), func(client.AskFunc) {
				log.Info("joined: ask it with 'dragoman ask "+quoted(id)+" ...'", "agent", id, "dialect", dialect)
				wire.Begun.Store(true)
				joined()
			}, slog.New(wire))
		})
		if err == nil {
			log.Info("left", "agent", id)
		}
		if errors.Is(err, client.ErrNotTakenIn) {
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

// checkNames makes a usage error of an invalid agent id, and of a domain that no address
// can name.
func checkNames(card core.Card) error {
	if err := core.CheckAgentID(card.ID); err != nil {
		return &exit{ExitUsage, errors.New(core.AsFault(err).Message)}
	}
	for _, d := range card.Domains {
		if _, err := core.ParseAddress("domain:" + d); err != nil || strings.ContainsAny(d, " \t\n") {
			return &exit{ExitUsage, fmt.Errorf("--domain %q: write words with dots between, such as family.calendar", d)}
		}
	}
	return nil
}

// secretOf reads the secret that an agent signs with from a file, without its line end.
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
