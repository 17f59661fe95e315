package command

import (
	"cmp"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/bench"
)

func benchCommand(io Streams) *cobra.Command {
	var asJSON bool
	var o bench.Options
	c := &cobra.Command{
		Use: "bench", Short: "Measure the hub against a plain relay", Args: cobra.NoArgs,
		Long: `Measure what the hub costs. Clients, the hub and the agents are a process each, and
beside the hub runs a plain relay that is made of the same libraries and nothing else.
Both take turns, so that a machine that slows down slows down both; the ratio says
what the hub adds.

It uses free ports of this machine and a temporary directory. Without --rows it takes
two minutes. The rows are:

` + describeBenchRows(),
		Example: `  dragoman bench --rows single
  dragoman bench --rows 'pair-rest-*' --rounds 3 --time 500ms
  dragoman bench --rows single,parallel --base-binary ./dragoman-before`,
	}
	f := c.Flags()
	f.BoolVar(&asJSON, "json", false, "print JSON")
	f.IntVar(&o.Rounds, "rounds", 5, "`number` of rounds, in which each side takes a turn")
	f.DurationVar(&o.Each, "time", 2*time.Second, "`time` that one turn lasts")
	f.IntVar(&o.Agents, "agents", 200, "`number` of idle agents whose memory is measured")
	f.IntVar(&o.Crowd, "crowd", 10_000, "`number` of agents in the crowd rows")
	f.StringSliceVar(&o.Rows, "rows", nil, "`names` of the rows to measure, with * and ?; 'all' for every row")
	f.StringVar(&o.HubBinary, "hub-binary", "", "`path` of the program that runs as the hub; default this one")
	f.StringVar(&o.BaseBinary, "base-binary", "", "`path` of another build, whose hub takes turns with the hub")
	f.StringArrayVar(&o.HubEnv, "hub-env", nil, "`NAME=VALUE` in the environment of the hub, such as DRAGOMAN_JOURNAL_SYNC=always; may be repeated")
	c.AddCommand(benchAgentCommand(), benchRelayCommand(), benchCrowdCommand())
	c.RunE = func(c *cobra.Command, _ []string) error {
		rows, err := bench.ChooseRows(o.Rows)
		if err != nil {
			return &exit{ExitUsage, err}
		}
		ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		r, err := bench.Run(ctx, o, rows, io.Err)
		switch {
		case ctx.Err() != nil:
			return &exit{ExitInterrupted, errLeft}
		case err != nil:
			return err
		}
		if asJSON {
			return printJSON(io.Out, r)
		}
		return printBench(io.Out, r)
	}
	return c
}

// describeBenchRows lists the rows for the help text.
func describeBenchRows() string {
	var s strings.Builder
	for _, row := range bench.Rows() {
		if strings.HasPrefix(row.Name, "pair-") {
			continue
		}
		about := row.About
		if row.ByRequest {
			about += " (by request)"
		}
		fmt.Fprintf(&s, "  %-24s %s\n", row.Name, about)
	}
	fmt.Fprintf(&s, "  %-24s %s", "pair-REQUESTER-AGENT-N", "a requester asks an agent, N (1 or 64) at a time (by request)")
	return s.String()
}

// printBench prints a table of the sides that took turns, and the figures below it.
func printBench(out io.Writer, r bench.Result) error {
	fmt.Fprintf(out, "dragoman %s, %s, %d CPUs\n\n", r.Version, r.Go, r.CPUs)
	t := newTable(out, "ROW", "SIDE", "P50", "P90", "P99", "CHUNKS/S", "BYTES/ANSWER", "FIRST/THIS")
	compared := false
	for _, row := range r.Rows {
		if row.Comparison == nil {
			continue
		}
		name := row.Name
		compared = true
		for i, s := range row.Sides {
			ratios, bytes := "", ""
			if i > 0 {
				ratios = fmt.Sprintf("p50 %.2f, p99 %.2f, rate %.2f", s.P50Ratio, s.P99Ratio, s.RateRatio)
			}
			if s.Wire > 0 {
				bytes = fmt.Sprintf("%.0f", s.Wire)
			}
			t.row(name, s.Name, round(s.Took.At(.5)), round(s.Took.At(.9)), round(s.Took.At(.99)), fmt.Sprintf("%.0f", s.Rate), bytes, ratios)
			name = ""
		}
	}
	if compared {
		if err := t.flush(); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	for _, row := range r.Rows {
		for _, f := range row.Figures {
			fmt.Fprintf(out, "%s, %s: %.4g %s\n", row.Name, f.Name, f.Value, f.Unit)
		}
	}
	return nil
}

func round(d time.Duration) string {
	return d.Round(cmp.Or(time.Duration(0), max(time.Microsecond, d/1000))).String()
}
