package command

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/transports/stdio"
)

func serveCommand(io Streams) *cobra.Command {
	c := &cobra.Command{
		Use: "serve", Short: "Run a hub", Args: cobra.NoArgs,
		Long: `Run a hub until it is interrupted. The first interrupt stops it in good order: peers
are told, running tasks may finish, then it ends. A second one ends it at once.

Every setting can stand in a YAML file (--config), in the environment (DRAGOMAN_
and the name in capitals) or on the command line; 'dragoman check' explains each
and shows its value.`,
	}
	config.AddFlags(c.Flags())
	c.RunE = func(c *cobra.Command, _ []string) error {
		settings, err := config.Load(c.Flags(), os.Environ())
		if err != nil {
			return &exit{ExitUsage, err}
		}
		return serve(c.Context(), settings, io, func() (config.Config, error) { return config.Load(c.Flags(), os.Environ()) })
	}
	return c
}

// serve runs a hub until a signal, or until its only peer has gone. On SIGHUP it reads
// the settings again.
func serve(ctx context.Context, settings config.Config, io Streams, read func() (config.Config, error)) error {
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)

	log := newLog(io.Err, settings.LogLevel, settings.LogFormat)
	if err := service.CheckListeners(settings); err != nil {
		return &exit{ExitUsage, err}
	}
	service.LimitMemory(settings.Limits.Memory)
	s, err := service.Start(ctx, settings, log, nil)
	if err != nil {
		return err
	}
	s.ReturnMemory()
	log.Info("the hub is ready", readyLine(s.Addresses(), settings)...)
	var gone <-chan struct{}
	if settings.Stdio {
		local, err := openStdio(io, stdio.Options{})
		if err != nil {
			return err
		}
		gone = s.ServeStdio(local)
		if s.Addresses() != (service.Addresses{}) {
			gone = nil // others can come
		}
	}

	var cause error
	reason := ""
	for reason == "" {
		select {
		case <-reload:
			again, err := read()
			if err == nil {
				err = s.Reload(again)
			}
			if err != nil {
				log.Error("the settings could not be read again: those before hold", "error", err)
			}
		case sig := <-signals:
			log.Info("stopping: interrupt again to stop at once", "signal", sig.String(), "patience", settings.StopTimeout.String())
			reason = "shutdown"
		case cause = <-s.Failed():
			reason = "a listener ended"
		case <-gone:
			reason = "the only peer has gone"
		case <-ctx.Done():
			reason = "shutdown"
		}
	}
	stop, cancel := context.WithTimeout(context.Background(), settings.StopTimeout)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.Stop(stop, reason) }()
	select {
	case err = <-done:
	case <-signals:
		cancel()
		err = <-done
	}
	if err != nil {
		log.Error("stopping", "error", err)
	} else {
		log.Info("the hub has stopped", "reason", reason)
	}
	return errors.Join(cause, err)
}

// readyLine is where the hub listens and keeps what it has, and nothing of what is
// left out.
func readyLine(at service.Addresses, c config.Config) []any {
	var line []any
	for _, f := range [][2]string{
		{"grpc", at.GRPC}, {"http", at.HTTP}, {"pi", at.Pi}, {"pi_socket", at.PiSocket},
		{"data", c.DataDir}, {"nats", nats.Redacted(c.Journal.NATSURL)}, {"version", service.Version},
	} {
		if f[1] != "" {
			line = append(line, f[0], f[1])
		}
	}
	return line
}

func checkCommand(io Streams) *cobra.Command {
	var asJSON, envelope bool
	c := &cobra.Command{
		Use: "check [KIND...]", Short: "Check the settings and explain them, or the envelopes of ACP",
		Long: `Read the settings and the files that they name as 'dragoman serve' would, say what is
wrong with them, and print each with its value, its default where that is another,
its variable and what it sets.

With --envelope print instead how the envelopes of ACP look: an example of each kind,
or of the kinds named, with a comment on every member. It is enough for a language
model to write them.`,
		Example: `  dragoman check --config dragoman.yaml
  dragoman check --envelope query response error`,
		Args: func(c *cobra.Command, args []string) error {
			if envelope {
				return nil
			}
			return cobra.NoArgs(c, args)
		},
	}
	config.AddFlags(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON; of --envelope an array, without comments")
	c.Flags().BoolVar(&envelope, "envelope", false, "print how the envelopes of ACP look, of the kinds named or of all")
	c.RunE = func(c *cobra.Command, kinds []string) error {
		if envelope {
			return printEnvelopes(io.Out, kinds, asJSON)
		}
		settings, err := config.Load(c.Flags(), os.Environ())
		if err == nil {
			err = errors.Join(service.CheckListeners(settings), service.CheckFiles(settings))
		}
		if err != nil {
			return &exit{ExitUsage, err}
		}
		settings.Journal.NATSURL = nats.Redacted(settings.Journal.NATSURL)
		if asJSON {
			return printJSON(io.Out, settings.Plain())
		}
		return explain(io.Out, settings)
	}
	return c
}

// explain prints what comes of each setting.
func explain(out io.Writer, c config.Config) error {
	usual := config.Default()
	usual.Journal.Bytes = c.DefaultJournalBytes()
	values, standard := c.Values(), usual.Values()
	t := newTable(out, "SETTING", "VALUE", "DEFAULT", "VARIABLE", "WHAT IT SETS")
	for _, s := range config.All() {
		other := ""
		if standard[s.Key] != values[s.Key] {
			other = orDash(standard[s.Key])
		}
		t.row(s.Key, orDash(values[s.Key]), other, config.Variable(s.Key), s.Rule.Description)
	}
	return t.flush()
}
