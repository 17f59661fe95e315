package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// Exit codes; those of failures are the program's own.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run runs a bench or, if the first argument names one, another process of it, and returns the exit code.
func run(args []string, out, log io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if len(args) > 0 {
		if peer := peers[args[0]]; peer != nil {
			return exitCode(ctx, peer(ctx, args[1:]), log)
		}
	}
	o, asJSON, err := readFlags(args, log)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(log, "bench:", err)
		return exitUsage
	}
	return exitCode(ctx, measureAndPrint(ctx, o, asJSON, out, log), log)
}

func exitCode(ctx context.Context, err error, log io.Writer) int {
	switch {
	case ctx.Err() != nil:
		return exitInterrupted
	case err != nil:
		fmt.Fprintln(log, "bench:", err)
		return exitFailed
	}
	return 0
}

func measureAndPrint(ctx context.Context, o options, asJSON bool, out, log io.Writer) error {
	r, err := measureAll(ctx, o, func(nth int, row Row) {
		fmt.Fprintf(log, "row %d of %d: %s, %s\n", nth, len(o.rows), row.Name, row.About)
	})
	switch {
	case err != nil:
		return err
	case asJSON:
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	return printTable(out, r)
}

// readFlags reads the flags of a bench. It prints what is wrong with one that cannot be parsed.
func readFlags(args []string, log io.Writer) (o options, asJSON bool, err error) {
	var rows string
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(log)
	f.BoolVar(&asJSON, "json", false, "print JSON")
	f.IntVar(&o.rounds, "rounds", 5, "`number` of rounds; each side has one turn per round")
	f.DurationVar(&o.each, "time", 2*time.Second, "`time` of one turn")
	f.IntVar(&o.agents, "agents", 200, "`number` of idle agents whose memory is measured")
	f.IntVar(&o.crowd, "crowd", 10_000, "`number` of agents in the crowd rows")
	f.StringVar(&rows, "rows", "", "`names` of the rows to measure with commas between, with * and ?; 'all' for every row")
	f.StringVar(&o.hubBinary, "hub-binary", "", "`path` of the program that runs as the hub; default: a build of this checkout")
	f.StringVar(&o.baseBinary, "base-binary", "", "`path` of another build to compare with")
	f.Func("hub-env", "`NAME=VALUE` for the environment of the hub, such as DRAGOMAN_JOURNAL_SYNC=always; may be repeated", func(v string) error {
		if name, _, ok := strings.Cut(v, "="); !ok || name == "" {
			return errors.New("write NAME=VALUE")
		}
		o.hubEnv = append(o.hubEnv, v)
		return nil
	})
	f.Usage = func() {
		fmt.Fprintf(log, "Usage: go run ./tools/bench [flags]\n\nWithout -rows it takes two minutes. The rows are:\n\n%s\n\nFlags:\n", describeRows())
		f.PrintDefaults()
	}
	if err := f.Parse(args); err != nil {
		return o, false, err
	}
	if f.NArg() > 0 {
		return o, false, fmt.Errorf("unknown argument %q", f.Arg(0))
	}
	var patterns []string
	if rows != "" {
		patterns = strings.Split(rows, ",")
	}
	if o.rows, err = chooseRows(patterns); err != nil {
		return o, false, err
	}
	return o, asJSON, o.check()
}

// check returns an error for options that would measure nothing.
func (o *options) check() error {
	switch {
	case o.rounds < 1:
		return fmt.Errorf("-rounds %d: want at least 1", o.rounds)
	case o.each < time.Millisecond:
		return fmt.Errorf("-time %s: want at least 1ms", o.each)
	case o.agents < 1:
		return fmt.Errorf("-agents %d: want at least 1", o.agents)
	case o.crowd < 1:
		return fmt.Errorf("-crowd %d: want at least 1", o.crowd)
	}
	for name, binary := range map[string]string{"-hub-binary": o.hubBinary, "-base-binary": o.baseBinary} {
		if binary == "" {
			continue
		}
		if _, err := exec.LookPath(binary); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// describeRows lists the rows for the usage.
func describeRows() string {
	var s strings.Builder
	for _, row := range allRows() {
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
