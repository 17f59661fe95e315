package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/adapters/nats"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/transports/stdio"
)

func serveCommand(io streams) *cobra.Command {
	c := &cobra.Command{
		Use: "serve", Short: "Run a hub", Args: cobra.NoArgs,
		Long: `Run a hub until it is interrupted. The first interrupt stops it in good order: peers
are told, running tasks may finish, then it ends. A second one ends it at once.

Every setting can stand in a YAML file (--config), in the environment (DRAGOMAN_
and the name in capitals) or on the command line; 'dragoman check' explains each
and shows its value.`,
	}
	serveFlags(c.Flags())
	c.RunE = func(c *cobra.Command, _ []string) error {
		config, err := loadConfig(c.Flags(), environ())
		if err != nil {
			return &exit{exitUsage, err}
		}
		return serve(c.Context(), config, io, func() (Config, error) { return loadConfig(c.Flags(), environ()) })
	}
	return c
}

// serve runs a hub until a signal, or until its only peer has gone. On SIGHUP it reads
// the settings again.
func serve(ctx context.Context, config Config, io streams, read func() (Config, error)) error {
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)

	log := newLog(io.err, config.LogLevel, config.LogFormat)
	if err := checkDoors(config); err != nil {
		return &exit{exitUsage, err}
	}
	limitMemory(config.Limits.Memory)
	s, err := Start(ctx, config, log, nil)
	if err != nil {
		return err
	}
	idle := time.NewTicker(idleCheck)
	defer idle.Stop()
	s.loops.Go(func() { returnMemory(s.ctx, idle.C, log) })
	log.Info("the hub is ready", readyLine(s.bound, config)...)
	alone := make(chan struct{})
	if config.Stdio {
		local, err := openStdio(io, stdio.Options{})
		if err != nil {
			return err
		}
		s.conns.Go(func() {
			reason := s.pi.Serve(s.ctx, local, pi.ConnOptions{
				Principal: core.Principal{ID: "stdio"}, Transport: pi.Stdio, Snapshots: s.snapshots, Lifecycle: s.lifecycle,
			})
			log.Info("the peer on stdin and stdout has gone", "reason", reason.Error())
			if s.bound == (Addresses{}) {
				close(alone)
			}
		})
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
			log.Info("stopping: interrupt again to stop at once", "signal", sig.String(), "patience", config.StopTimeout.String())
			reason = "shutdown"
		case cause = <-s.Failed():
			reason = "a listener ended"
		case <-alone:
			reason = "the only peer has gone"
		case <-ctx.Done():
			reason = "shutdown"
		}
	}
	stop, cancel := context.WithTimeout(context.Background(), config.StopTimeout)
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
func readyLine(at Addresses, c Config) []any {
	var line []any
	for _, f := range [][2]string{
		{"grpc", at.GRPC}, {"http", at.HTTP}, {"pi", at.Pi}, {"pi_socket", at.PiSocket},
		{"data", c.DataDir}, {"nats", nats.Redacted(c.Journal.NATSURL)}, {"version", version},
	} {
		if f[1] != "" {
			line = append(line, f[0], f[1])
		}
	}
	return line
}

// checkDoors refuses a hub that nobody could reach, and one that everybody could.
func checkDoors(c Config) error {
	if c.GRPCAddr == "" && c.HTTPAddr == "" && c.PiAddr == "" && c.PiSocket == "" && !c.Stdio {
		return errors.New("every address is empty, so that nobody could reach the hub: give it one of --grpc-addr, --http-addr, --pi-addr, --pi-socket or --stdio")
	}
	return checkExposure(c)
}

// checkFiles reads the files that settings name, as a start does.
func checkFiles(c Config) error {
	_, tokens := readTokens(c.Auth.Tokens)
	_, told := readSecrets(c.Coven.Secrets)
	_, signing := readSigningSecrets(c.Parallax.Secrets)
	return errors.Join(tokens, told, signing)
}

func checkCommand(io streams) *cobra.Command {
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
	serveFlags(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON; of --envelope an array, without comments")
	c.Flags().BoolVar(&envelope, "envelope", false, "print how the envelopes of ACP look, of the kinds named or of all")
	c.RunE = func(c *cobra.Command, kinds []string) error {
		if envelope {
			return printEnvelopes(io.out, kinds, asJSON)
		}
		config, err := loadConfig(c.Flags(), environ())
		if err == nil {
			err = errors.Join(checkDoors(config), checkFiles(config))
		}
		if err != nil {
			return &exit{exitUsage, err}
		}
		config.Journal.NATSURL = nats.Redacted(config.Journal.NATSURL)
		if asJSON {
			return printJSON(io.out, config.plain())
		}
		return explain(io.out, config)
	}
	return c
}

// leaves are the values of all settings, as text.
func leaves(c Config) map[string]string {
	all := map[string]string{}
	eachLeaf("", c.plain(), func(key string, value any) { all[key] = fmt.Sprint(value) })
	return all
}

// explain prints what comes of each setting.
func explain(out io.Writer, c Config) error {
	usual := defaultConfig()
	usual.Journal.Bytes = c.journalBytes()
	values, standard := leaves(c), leaves(usual)
	t := newTable(out, "SETTING", "VALUE", "DEFAULT", "VARIABLE", "WHAT IT SETS")
	for _, s := range allSettings() {
		other := ""
		if standard[s.key] != values[s.key] {
			other = orDash(standard[s.key])
		}
		t.row(s.key, orDash(values[s.key]), other, variable(s.key), s.rule.Description)
	}
	return t.flush()
}
