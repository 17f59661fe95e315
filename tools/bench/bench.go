package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// options are what is measured and for how long.
type options struct {
	rounds                int
	each                  time.Duration
	agents, crowd         int
	rows                  []Row
	hubBinary, baseBinary string
	hubEnv                []string
}

// Row is one thing that is measured.
type Row struct {
	Name, About string
	// ByName rows take long and are measured only if they are named.
	ByName  bool
	measure measurement
}

// measurement measures a row.
type measurement func(ctx context.Context, b *bench, r *RowResult) error

// chooseRows returns the rows that match any of the patterns, or without patterns all that
// are not ByName.
func chooseRows(patterns []string) ([]Row, error) {
	var chosen []Row
	used := map[string]bool{}
	for _, row := range allRows() {
		wanted := len(patterns) == 0 && !row.ByName
		for _, p := range patterns {
			matches, err := path.Match(p, row.Name)
			if err != nil {
				return nil, fmt.Errorf("-rows %q: %w", p, err)
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
			return nil, fmt.Errorf("-rows %q: no row has that name; -help lists them", p)
		}
	}
	return chosen, nil
}

// The shape of the load.
const (
	parallel    = 64
	burstChunks = 5000
	burstAtOnce = 16
	chunkBytes  = 64
)

// responseTimeout is how long an answer to a control frame and the end of the relay may take.
const responseTimeout = 10 * time.Second

// measureAll measures the rows and ends every process that it started. It calls starting before each of them.
func measureAll(ctx context.Context, o options, starting func(nth int, row Row)) (r Result, err error) {
	// Garbage of the client would count against the hub, which sends fifteen frames where the relay sends two.
	defer debug.SetGCPercent(debug.SetGCPercent(1000))
	dir, err := os.MkdirTemp("", "dragoman-bench-*")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{options: o, processes: processes{dir: dir}, shared: map[string][]server{}, known: map[string][]string{}}
	defer func() { err = errors.Join(err, b.end()) }()
	version, err := b.findHub(ctx)
	if err != nil {
		return r, err
	}
	r = Result{Version: version, Go: runtime.Version(), CPUs: runtime.NumCPU()}
	for i, row := range o.rows {
		starting(i+1, row)
		result := RowResult{Name: row.Name, About: row.About}
		if err := row.measure(ctx, b, &result); err != nil {
			return r, fmt.Errorf("%s: %w", row.Name, err)
		}
		r.Rows = append(r.Rows, result)
	}
	return r, nil
}

// findHub builds the program that runs as the hub unless one was named, and returns what it says of its version.
func (b *bench) findHub(ctx context.Context) (string, error) {
	if b.hubBinary == "" {
		b.hubBinary = filepath.Join(b.dir, "dragoman")
		const program = "github.com/dragoman-hub/dragoman/cmd/dragoman"
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", b.hubBinary, program).CombinedOutput(); err != nil { //nolint:gosec // paths of this checkout
			return "", fmt.Errorf("building the hub: %w: %s", err, out)
		}
	}
	out, err := exec.CommandContext(ctx, b.hubBinary, "version").Output() //nolint:gosec // chosen by the user
	if err != nil {
		return "", fmt.Errorf("%s version: %w", b.hubBinary, err)
	}
	return strings.TrimSpace(string(out)), nil
}
