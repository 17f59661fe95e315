package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// demoTime bounds the demo.
const demoTime = 30 * time.Second

func demoCommand(io streams) *cobra.Command {
	var asJSON, verbose bool
	c := &cobra.Command{
		Use: "demo", Short: "Run a hub with an agent of each dialect, each asking every other", Args: cobra.NoArgs,
		Long: `Run a hub on free ports with an agent of each dialect and a pi client, over real
sockets. Each asks every other; the conversation and a table of who asked whom are
printed. It exits with 1 if anybody got no answer.`,
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&verbose, "verbose", false, "print the log of the hub on stderr")
	c.RunE = func(c *cobra.Command, _ []string) error {
		wanted, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		ctx, cancel := context.WithTimeout(wanted, demoTime)
		defer cancel()
		log := slog.New(slog.DiscardHandler)
		if verbose {
			log = newLog(io.err, "info", "auto")
		}
		err := demo(ctx, io, log, asJSON)
		if wanted.Err() != nil {
			return &exit{exitInterrupted, errLeft}
		}
		return err
	}
	return c
}

// said is one exchange of the demo.
type said struct {
	From   string        `json:"from"`
	To     string        `json:"to"`
	Asked  string        `json:"asked"`
	Answer string        `json:"answer,omitempty"`
	Error  string        `json:"error,omitempty"`
	Took   time.Duration `json:"took_ns"`
}

// demo plays the demo on a hub of its own.
func demo(ctx context.Context, io streams, log *slog.Logger, asJSON bool) (err error) {
	s, err := Start(ctx, localConfig(), log, nil)
	if err != nil {
		return err
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		err = errors.Join(err, s.Stop(stop, "the demo is over"))
	}()
	troupe, err := gather(ctx, s)
	defer troupe.leave()
	if err != nil {
		return err
	}
	if !asJSON {
		fmt.Fprintf(io.out, "A hub on %s (gRPC), %s (HTTP) and %s (pi).\n\n", s.bound.GRPC, s.bound.HTTP, s.bound.Pi)
	}
	var all []said
	failed := 0
	for _, from := range askers {
		for _, to := range answerers {
			if from == to {
				continue
			}
			x := said{From: from, To: to, Asked: "good day from " + from}
			began := time.Now()
			answer, err := troupe.ask(ctx, from, to, x.Asked)
			x.Took, x.Answer = time.Since(began), answer
			if want := reply(to, x.Asked); err == nil && answer != want {
				err = fmt.Errorf("got %q, want %q", answer, want)
			}
			if err != nil {
				x.Error = err.Error()
				failed++
			}
			all = append(all, x)
			if !asJSON {
				fmt.Fprintf(io.out, "%-8s → %-8s  %s\n%-8s ← %-8s  %s%s\n", from, to, x.Asked, "", to, strings.Map(printable, x.Answer), strings.Map(printable, x.Error))
			}
		}
	}
	if asJSON {
		if err := printJSON(io.out, all); err != nil {
			return err
		}
	} else if err := printWhoAskedWhom(io, all); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d questions got no answer", failed, len(all))
	}
	return nil
}

func printWhoAskedWhom(io streams, all []said) error {
	fmt.Fprintln(io.out)
	t := newTable(io.out, append([]string{"asked by \\ of"}, answerers...)...)
	for _, from := range askers {
		row := []string{from}
		for _, to := range answerers {
			cell := "-"
			for _, x := range all {
				if x.From == from && x.To == to {
					if cell = "ok " + x.Took.Round(10*time.Microsecond).String(); x.Error != "" {
						cell = "FAILED"
					}
				}
			}
			row = append(row, cell)
		}
		t.row(row...)
	}
	return t.flush()
}

// localConfig is a hub on free ports of this machine that remembers nothing
// beyond its end.
func localConfig() Config {
	c := defaultConfig()
	c.GRPCAddr, c.HTTPAddr, c.PiAddr = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	c.StopTimeout, c.Pi.SessionDir = time.Second, ""
	return c
}
