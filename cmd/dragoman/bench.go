package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

func benchCommand(io streams) *cobra.Command {
	var asJSON bool
	var o benchOptions
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
	f.IntVar(&o.rounds, "rounds", 5, "`number` of turns that each side takes")
	f.DurationVar(&o.each, "time", 2*time.Second, "`time` that one turn lasts")
	f.IntVar(&o.agents, "agents", 200, "`number` of idle agents that are weighed")
	f.IntVar(&o.crowd, "crowd", 10_000, "`number` of agents in the crowd rows")
	f.StringSliceVar(&o.rows, "rows", nil, "`names` of the rows to measure, with * and ?; 'all' for every row")
	f.StringVar(&o.hubBinary, "hub-binary", "", "`path` of the program that runs as the hub; default this one")
	f.StringVar(&o.baseBinary, "base-binary", "", "`path` of another build, whose hub takes turns with the hub")
	f.StringArrayVar(&o.hubEnv, "hub-env", nil, "`NAME=VALUE` in the environment of the hub, such as DRAGOMAN_JOURNAL_SYNC=always; may be repeated")
	c.AddCommand(benchAgentCommand(io), benchRelayCommand(io), benchCrowdCommand(io))
	c.RunE = func(c *cobra.Command, _ []string) error {
		rows, err := chooseBenchRows(o.rows)
		if err != nil {
			return &exit{exitUsage, err}
		}
		ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		r, err := runBench(ctx, o, rows, io)
		switch {
		case ctx.Err() != nil:
			return &exit{exitInterrupted, errLeft}
		case err != nil:
			return err
		}
		if asJSON {
			return printJSON(io.out, r)
		}
		return r.print(io.out)
	}
	return c
}

type benchOptions struct {
	rounds                int
	each                  time.Duration
	agents, crowd         int
	rows                  []string
	hubBinary, baseBinary string
	hubEnv                []string
}

// benchRow is one thing that is measured.
type benchRow struct {
	name, about string
	// byRequest rows take long and are measured only when they are named.
	byRequest bool
	measure   func(ctx context.Context, b *bench, r *rowResult) error
}

// chooseBenchRows returns the rows that match one of the patterns; without patterns
// the rows that are not by request.
func chooseBenchRows(patterns []string) ([]benchRow, error) {
	var chosen []benchRow
	used := map[string]bool{}
	for _, row := range benchRows() {
		wanted := len(patterns) == 0 && !row.byRequest
		for _, p := range patterns {
			matches, err := path.Match(p, row.name)
			if err != nil {
				return nil, fmt.Errorf("--rows %q: %w", p, err)
			}
			if matches || p == "all" {
				wanted, used[p] = true, true
			}
		}
		if wanted {
			chosen = append(chosen, row)
		}
	}
	for _, p := range patterns {
		if !used[p] {
			return nil, fmt.Errorf("--rows %q: no row has that name; 'dragoman bench --help' lists them", p)
		}
	}
	return chosen, nil
}

// describeBenchRows lists the rows for the help text.
func describeBenchRows() string {
	var s strings.Builder
	for _, row := range benchRows() {
		if strings.HasPrefix(row.name, "pair-") {
			continue
		}
		about := row.about
		if row.byRequest {
			about += " (by request)"
		}
		fmt.Fprintf(&s, "  %-24s %s\n", row.name, about)
	}
	fmt.Fprintf(&s, "  %-24s %s", "pair-REQUESTER-AGENT-N", "a requester asks an agent, N (1 or 64) at a time (by request)")
	return s.String()
}

// The shape of the load.
const (
	benchParallel    = 64
	benchBurstChunks = 5000
	benchBurstAtOnce = 16
	benchChunk       = 64
)

// runBench measures the rows and ends every process that it started.
func runBench(ctx context.Context, o benchOptions, rows []benchRow, io streams) (r benchResult, err error) {
	// The garbage of the client is not what is measured, and the hub's pays for fifteen
	// frames where the relay's pays for two.
	defer debug.SetGCPercent(debug.SetGCPercent(1000))
	dir, err := os.MkdirTemp("", "dragoman-bench-*")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{benchOptions: o, processes: processes{dir: dir}, shared: map[string][]server{}, known: map[string][]string{}}
	defer func() { err = errors.Join(err, b.end()) }()
	r = benchResult{Version: version, Go: runtime.Version(), CPUs: runtime.NumCPU()}
	for _, row := range rows {
		fmt.Fprintf(io.err, "%s: %s...\n", row.name, row.about)
		result := rowResult{Name: row.name, About: row.about}
		if err := row.measure(ctx, b, &result); err != nil {
			return r, fmt.Errorf("%s: %w", row.name, err)
		}
		r.Rows = append(r.Rows, result)
	}
	return r, nil
}
