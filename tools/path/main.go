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
	"strings"
	"text/tabwriter"
	"time"
)

// steady is how many times as many questions a hub is asked whose allocations are counted: the runtime counts a
// small object once the memory that it has set aside for its size is used up, so that the sum is some hundred off.
const steady = 20

// patience is how long everything may take; most of it is two builds from a cold cache.
const patience = time.Hour

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
	m := &meter{
		root:     root,
		counting: &stage{dir: filepath.Join(work, "counting"), program: filepath.Join(work, "dragoman-counting"), journal: journal},
		plain:    &stage{dir: filepath.Join(work, "plain"), program: filepath.Join(work, "dragoman"), journal: journal},
	}
	if err := m.build(ctx); err != nil {
		return err
	}
	var routes []route
	for _, d := range dialects {
		r, err := m.measure(ctx, d)
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

// A meter compares hubs: those of a program with counters, and for allocations, of which counters cause some more,
// those of a plain one.
type meter struct {
	root, goroot    string
	counting, plain *stage
}

// build builds the program with counters for all packages of the checkout and for locks, and without any.
func (m *meter) build(ctx context.Context) error {
	for _, args := range [][]string{
		{"-o", m.counting.program, "-cover", "-covermode=atomic", "-coverpkg=./...,sync"},
		{"-o", m.plain.program},
	} {
		c := exec.CommandContext(ctx, "go", append(append([]string{"build"}, args...), "./cmd/dragoman")...) //nolint:gosec // constants
		c.Dir, c.Stderr = m.root, os.Stderr
		if err := c.Run(); err != nil {
			return fmt.Errorf("%s: %w", c, err)
		}
	}
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	m.goroot = strings.TrimSpace(string(out))
	return err
}

// measure returns the route of what a dialect measures.
func (m *meter) measure(ctx context.Context, d dialect) (route, error) {
	before, err := m.counting.play(ctx, d, load{few, 0})
	if err != nil {
		return route{}, err
	}
	after, err := m.counting.play(ctx, d, d.more)
	if err != nil {
		return route{}, err
	}
	r, err := follow(d.name, m.root, m.goroot, after.less(before), d.more.times())
	if err != nil {
		return route{}, err
	}
	fewer, err := m.plain.allocations(ctx, d, load{few * steady, 0})
	if err != nil {
		return route{}, err
	}
	all, err := m.plain.allocations(ctx, d, load{d.more.questions * steady, d.more.further})
	r.allocs = (all - fewer) / float64(d.more.times()*steady)
	return r, err
}

// table prints a row for each route.
func table(out io.Writer, routes []route) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tfunctions\tfiles\tpackages\tstatements\tcalls\tlocks\tallocs\t")
	for _, r := range routes {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%.0f\t%.0f\t%.3g\t%.3g\t\n",
			r.dialect, len(r.functions), r.files(), r.packages(), r.statements, r.calls(), r.locks, r.allocs)
	}
	return w.Flush()
}
