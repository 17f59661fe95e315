package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/demo"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
)

// demoTime is the maximum duration of the demo.
const demoTime = 30 * time.Second

func demoCommand(io Streams) *cobra.Command {
	var asJSON, verbose bool
	c := &cobra.Command{
		Use: "demo", Short: "Run a hub with an agent of each dialect, each asking every other", Args: cobra.NoArgs,
		Long: `Run a hub on free ports with an agent of each dialect, and clients of pi-server, A2A, MCP
and the editors' protocol. Each asks every other agent, over real sockets; the questions, the answers and a table of them are
printed. The exit code is 1 if a question got no answer.`,
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
			log = newLog(io.Err, "info", "auto")
		}
		err := runDemo(ctx, io, log, asJSON)
		if wanted.Err() != nil {
			return &exit{ExitInterrupted, errLeft}
		}
		return err
	}
	return c
}

// exchange is one question of the demo and its answer.
type exchange struct {
	From   string        `json:"from"`
	To     string        `json:"to"`
	Asked  string        `json:"asked"`
	Answer string        `json:"answer,omitempty"`
	Error  string        `json:"error,omitempty"`
	Took   time.Duration `json:"took_ns"`
}

// runDemo runs the demo on a hub of its own.
func runDemo(ctx context.Context, io Streams, log *slog.Logger, asJSON bool) (err error) {
	s, err := service.Start(ctx, config.Local(), log, nil)
	if err != nil {
		return err
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		err = errors.Join(err, s.Stop(stop, "the demo is over"))
	}()
	agents, err := demo.Join(ctx, s.Addresses(), log)
	defer agents.Leave()
	if err != nil {
		return err
	}
	if !asJSON {
		fmt.Fprintf(io.Out, "A hub on %s (gRPC), %s (HTTP) and %s (pi).\n\n", s.Addresses().GRPC, s.Addresses().HTTP, s.Addresses().Pi)
	}
	var all []exchange
	failed := 0
	for _, from := range demo.Requesters {
		for _, to := range demo.Answerers {
			if from == to {
				continue
			}
			x := exchange{From: from, To: to, Asked: "good day from " + from}
			began := time.Now()
			answer, err := agents.Ask(ctx, from, to, x.Asked)
			x.Took, x.Answer = time.Since(began), answer
			if want := demo.Reply(to, x.Asked); err == nil && answer != want {
				err = fmt.Errorf("got %q, want %q", answer, want)
			}
			if err != nil {
				x.Error = err.Error()
				failed++
			}
			all = append(all, x)
			if !asJSON {
				fmt.Fprintf(io.Out, "%-8s → %-8s  %s\n%-8s ← %-8s  %s%s\n", from, to, x.Asked, "", to, visible(x.Answer), visible(x.Error))
			}
		}
	}
	if asJSON {
		if err := printJSON(io.Out, map[string]any{"exchanges": all}); err != nil {
			return err
		}
	} else if err := printExchanges(io, all); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d questions got no answer", failed, len(all))
	}
	return nil
}

func printExchanges(io Streams, all []exchange) error {
	fmt.Fprintln(io.Out)
	t := newTable(io.Out, append([]string{"FROM \\ TO"}, demo.Answerers...)...)
	for _, from := range demo.Requesters {
		row := []string{from}
		for _, to := range demo.Answerers {
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
