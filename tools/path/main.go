package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"text/tabwriter"
	"time"
)

// few and many are how many questions the two hubs are asked that are compared.
const few, many = 5, 25

// patience is how long everything may take; most of it is a build from a cold cache.
const patience = 20 * time.Minute

func main() {
	root := flag.String("root", ".", "the `directory` of the checkout")
	list := flag.Bool("list", false, "list the functions, with their calls for a question")
	journal := flag.Bool("journal", false, "run the hubs with a journal, and not in memory alone")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, *root, *journal, *list)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "path:", err)
		os.Exit(1)
	}
}

// run prints the route of a question in each dialect.
func run(ctx context.Context, out io.Writer, root string, journal, list bool) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	work, err := os.MkdirTemp("", "dragoman-path-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	s := &stage{dir: work, program: filepath.Join(work, "dragoman"), journal: journal}
	if err := build(ctx, root, s.program); err != nil {
		return err
	}
	var routes []route
	for _, d := range dialects {
		r, err := measure(ctx, s, d, root)
		if err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		routes = append(routes, r)
	}
	if list {
		for _, r := range routes {
			r.list(out)
		}
	}
	return table(out, routes)
}

// build builds the program with counters for all packages of the checkout.
func build(ctx context.Context, root, program string) error {
	c := exec.CommandContext(ctx, "go", "build", "-cover", "-covermode=atomic", "-coverpkg=./...", "-o", program, "./cmd/dragoman")
	c.Dir, c.Stderr = root, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	return nil
}

// measure returns the route of a question in a dialect.
func measure(ctx context.Context, s *stage, d dialect, root string) (route, error) {
	before, err := s.play(ctx, d, few)
	if err != nil {
		return route{}, err
	}
	after, err := s.play(ctx, d, many)
	if err != nil {
		return route{}, err
	}
	return follow(d.name, root, after.less(before), many-few)
}

// table prints a row for each route.
func table(out io.Writer, routes []route) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tfunctions\tfiles\tpackages\tstatements\tcalls\t")
	for _, r := range routes {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%.0f\t%.0f\t\n", r.dialect, len(r.functions), r.files(), r.packages(), r.statements, r.calls())
	}
	return w.Flush()
}
