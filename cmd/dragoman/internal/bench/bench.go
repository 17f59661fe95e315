package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
)

// Options are what is measured and for how long.
type Options struct {
	Rounds                int
	Each                  time.Duration
	Agents, Crowd         int
	Rows                  []string
	HubBinary, BaseBinary string
	HubEnv                []string
}

// Row is one thing that is measured.
type Row struct {
	Name, About string
	// ByName rows take long and are measured only if they are named.
	ByName  bool
	measure measurement
}

// measurement measures a row.
type measurement func(ctx context.Context, b *run, r *RowResult) error

// ChooseRows returns the rows that match any of the patterns, or without patterns all that
// are not ByName.
func ChooseRows(patterns []string) ([]Row, error) {
	var chosen []Row
	used := map[string]bool{}
	for _, row := range Rows() {
		wanted := len(patterns) == 0 && !row.ByName
		for _, p := range patterns {
			matches, err := path.Match(p, row.Name)
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

// The shape of the load.
const (
	parallel    = 64
	burstChunks = 5000
	burstAtOnce = 16
	chunkBytes  = 64
)

// Run measures the rows and ends every process that it started. It calls starting before each of them.
func Run(ctx context.Context, o Options, rows []Row, starting func(nth int, row Row)) (r Result, err error) {
	// Garbage of the client would count against the hub, which sends fifteen frames where the
	// relay sends two.
	defer debug.SetGCPercent(debug.SetGCPercent(1000))
	dir, err := os.MkdirTemp("", "dragoman-bench-*")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &run{Options: o, processes: processes{dir: dir}, shared: map[string][]server{}, known: map[string][]string{}}
	defer func() { err = errors.Join(err, b.end()) }()
	r = Result{Version: service.Version, Go: runtime.Version(), CPUs: runtime.NumCPU()}
	for i, row := range rows {
		starting(i+1, row)
		result := RowResult{Name: row.Name, About: row.About}
		if err := row.measure(ctx, b, &result); err != nil {
			return r, fmt.Errorf("%s: %w", row.Name, err)
		}
		r.Rows = append(r.Rows, result)
	}
	return r, nil
}
