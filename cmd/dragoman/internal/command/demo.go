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

// demoTime is the maximum duration of the questions of the demo, and talkEvery is the time between
// two while it stays. Then demoFrames bytes of the frames of each connection are kept, for the
// console.
const (
	demoTime   = 30 * time.Second
	talkEvery  = 2 * time.Second
	demoFrames = 1 << 20
)

func demoCommand(io Streams) *cobra.Command {
	var asJSON, verbose, stay bool
	c := &cobra.Command{
		Use: "demo", Short: "Run a hub with an agent of each dialect, each asking every other", Args: cobra.NoArgs,
		Long: `Run a hub on free ports with an agent of each dialect, and clients of pi-server, A2A, MCP
and the editors' protocol. Each asks every other agent, over real sockets; the questions, the answers and a table of them are
printed. The exit code is 1 if a question got no answer.

With --stay the hub goes on until it is interrupted, the dialects talk now and then, and one agent waits for the approval
of a person. The address of the console is printed.`,
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&stay, "stay", false, "keep the hub until an interrupt, for a look at its console")
	c.Flags().BoolVar(&verbose, "verbose", false, "print the log of the hub on stderr")
	c.RunE = func(c *cobra.Command, _ []string) error {
		wanted, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		log := slog.New(slog.DiscardHandler)
		if verbose {
			log = newLog(io.Err, "info", "auto")
		}
		stayed, err := runDemo(wanted, io, log, asJSON, stay)
		if wanted.Err() != nil && !stayed {
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

// runDemo runs the demo on a hub of its own. It reports whether all questions were answered and
// the hub stayed until ctx ended, which is no interruption then.
func runDemo(ctx context.Context, io Streams, log *slog.Logger, asJSON, stay bool) (stayed bool, err error) {
	asking, cancel := context.WithTimeout(ctx, demoTime)
	defer cancel()
	settings := config.Local()
	if stay {
		settings.Frames.Keep = demoFrames
	}
	s, err := service.Start(asking, settings, log, nil)
	if err != nil {
		return false, err
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		err = errors.Join(err, s.Stop(stop, "the demo is over"))
	}()
	// They stay connected for as long as the hub is there.
	agents, err := demo.Join(ctx, s.Addresses(), log)
	defer agents.Leave()
	if err != nil {
		return false, err
	}
	if !asJSON {
		fmt.Fprintf(io.Out, "A hub on %s (gRPC), %s (HTTP) and %s (pi).\n\n", s.Addresses().GRPC, s.Addresses().HTTP, s.Addresses().Pi)
	}
	all, err := askAll(asking, io, agents, asJSON)
	printed := map[string]any{"exchanges": all}
	address := "http://" + s.Addresses().HTTP + "/"
	if stay {
		printed["console"] = address
	}
	if asJSON {
		err = errors.Join(err, printJSON(io.Out, printed))
	} else {
		err = errors.Join(err, printExchanges(io, all))
	}
	if err != nil || !stay {
		return false, err
	}
	if !asJSON {
		fmt.Fprintf(io.Out, "\nThe dialects go on talking. Look at %s\nCtrl-C ends it.\n", address)
	}
	return true, agents.Talk(ctx, s.Addresses(), talkEvery, log)
}

// askAll asks every question of the demo. Its error says how many got no answer.
func askAll(ctx context.Context, io Streams, agents *demo.Agents, asJSON bool) ([]exchange, error) {
	var all []exchange
	failed := 0
	for _, pair := range demo.Pairs() {
		from, to := pair[0], pair[1]
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
	if failed > 0 {
		return all, fmt.Errorf("%d of %d questions got no answer", failed, len(all))
	}
	return all, nil
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
