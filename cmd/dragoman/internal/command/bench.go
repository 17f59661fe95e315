package command

import (
	"fmt"
	"io"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/bench"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

func benchCommand(io Streams) *cobra.Command {
	var asJSON bool
	var o bench.Options
	c := &cobra.Command{
		Use: "bench", Short: "Measure the hub against a plain relay", Args: cobra.NoArgs,
		Long: `Measure the overhead of the hub over a plain relay that uses the same libraries. The
hub, the relay and the agents run as processes of their own. The sides take turns, so
that a slow machine slows all of them; the ratios compare the first side with the others.

The benchmark uses free ports and a temporary directory. Without --rows it takes two
minutes. The rows are:

` + describeBenchRows(),
		Example: `  dragoman bench --rows single
  dragoman bench --rows 'pair-rest-*' --rounds 3 --time 500ms
  dragoman bench --rows single,parallel --base-binary ./dragoman-before`,
	}
	f := c.Flags()
	f.BoolVar(&asJSON, "json", false, "print JSON")
	f.IntVar(&o.Rounds, "rounds", 5, "`number` of rounds; each side has one turn per round")
	each := timeFlag(f, "time", 2*time.Second, "`time` of one turn")
	f.IntVar(&o.Agents, "agents", 200, "`number` of idle agents whose memory is measured")
	f.IntVar(&o.Crowd, "crowd", 10_000, "`number` of agents in the crowd rows")
	f.StringSliceVar(&o.Rows, "rows", nil, "`names` of the rows to measure, with * and ?; 'all' for every row")
	f.StringVar(&o.HubBinary, "hub-binary", "", "`path` of the program that runs as the hub; default: this one")
	f.StringVar(&o.BaseBinary, "base-binary", "", "`path` of another build to compare with")
	f.StringArrayVar(&o.HubEnv, "hub-env", nil, "`NAME=VALUE` for the environment of the hub, such as DRAGOMAN_JOURNAL_SYNC=always; may be repeated")
	completeFlag(c, "rows", completeRows)
	c.AddCommand(benchAgentCommand(), benchRelayCommand(), benchCrowdCommand())
	c.RunE = func(c *cobra.Command, _ []string) error {
		o.Each = *each
		if err := checkBench(&o); err != nil {
			return err
		}
		rows, err := bench.ChooseRows(o.Rows)
		if err != nil {
			return &exit{ExitUsage, err}
		}
		ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		p := startProgress(io.Err, "")
		defer p.end()
		r, err := bench.Run(ctx, o, rows, func(nth int, row bench.Row) { p.say("row %d of %d: %s, %s", nth, len(rows), row.Name, row.About) })
		p.end()
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

// checkBench returns a usage error for options that would measure nothing. It replaces ~ in the paths of binaries.
func checkBench(o *bench.Options) error {
	switch {
	case o.Rounds < 1:
		return usagef("--rounds %d: want at least 1", o.Rounds)
	case o.Each < time.Millisecond:
		return usagef("--time %s: want at least 1ms", o.Each)
	case o.Agents < 1:
		return usagef("--agents %d: want at least 1", o.Agents)
	case o.Crowd < 1:
		return usagef("--crowd %d: want at least 1", o.Crowd)
	}
	for flag, binary := range map[string]*string{"--hub-binary": &o.HubBinary, "--base-binary": &o.BaseBinary} {
		if *binary == "" {
			continue
		}
		path, err := config.ExpandHome(*binary)
		if err == nil {
			*binary = path
			_, err = exec.LookPath(path)
		}
		if err != nil {
			return usagef("%s: %w", flag, err)
		}
	}
	for _, v := range o.HubEnv {
		if name, _, ok := strings.Cut(v, "="); !ok || name == "" {
			return usagef("--hub-env %q: write NAME=VALUE", v)
		}
	}
	return nil
}

// completeRows completes the last of the names of rows, with commas between.
func completeRows(_ *cobra.Command, _ []string, given string) (all []cobra.Completion, _ cobra.ShellCompDirective) {
	before := given[:strings.LastIndexByte(given, ',')+1]
	for _, row := range bench.Rows() {
		if name := before + row.Name; strings.HasPrefix(name, given) {
			all = append(all, cobra.CompletionWithDesc(name, row.About))
		}
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}

// describeBenchRows lists the rows for the help text.
func describeBenchRows() string {
	var s strings.Builder
	for _, row := range bench.Rows() {
		if strings.HasPrefix(row.Name, "pair-") {
			continue
		}
		about := row.About
		if row.ByName {
			about += " (only by name)"
		}
		fmt.Fprintf(&s, "  %-24s %s\n", row.Name, about)
	}
	fmt.Fprintf(&s, "  %-24s %s", "pair-REQUESTER-AGENT-N", "a requester asks an agent, N (1 or 64) at a time (only by name)")
	return s.String()
}

// printBench prints a table of the compared sides, and the figures below it.
func printBench(out io.Writer, r bench.Result) error {
	fmt.Fprintf(out, "dragoman %s, %s, %d CPUs\n\n", r.Version, r.Go, r.CPUs)
	t := newTable(out, "ROW", "SIDE", "P50", "P90", "P99", "CHUNKS/S", "BYTES/ANSWER", "P50 RATIO", "P99 RATIO", "RATE RATIO")
	compared := false
	for _, row := range r.Rows {
		if row.Comparison == nil {
			continue
		}
		name := row.Name
		compared = true
		for i, s := range row.Sides {
			bytes := ""
			if s.Wire > 0 {
				bytes = fmt.Sprintf("%.0f", s.Wire)
			}
			cells := []string{name, s.Name, round(s.Took.At(.5)), round(s.Took.At(.9)), round(s.Took.At(.99)), fmt.Sprintf("%.0f", s.Rate), bytes}
			if i > 0 {
				cells = append(cells, ratio(s.P50Ratio), ratio(s.P99Ratio), ratio(s.RateRatio))
			}
			t.row(cells...)
			name = ""
		}
	}
	if compared {
		if err := t.flush(); err != nil {
			return err
		}
		fmt.Fprintln(out, "\nA ratio is that of the first side of the row to this one: the median of the rounds.")
		fmt.Fprintln(out)
	}
	for _, row := range r.Rows {
		for _, f := range row.Figures {
			fmt.Fprintf(out, "%s, %s: %.4g %s\n", row.Name, f.Name, f.Value, f.Unit)
		}
	}
	return nil
}

func ratio(r float64) string { return fmt.Sprintf("%.2f", r) }

func round(d time.Duration) string { return d.Round(max(time.Microsecond, d/1000)).String() }
