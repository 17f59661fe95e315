package e2e

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
)

// benchBase is another build of the program that benchmarks measure too.
var benchBase = flag.String("bench.base", "", "another build of dragoman, whose hub takes turns with the others in the benchmarks that can measure it")

// benchHub is a hub in a process of its own that is measured, with a journal on disk.
type benchHub struct {
	service.Addresses
	pid int
}

// startBenchHub starts a hub of this build, or of the binary, with more settings.
func startBenchHub(b *testing.B, binary, settings string) *benchHub {
	b.Helper()
	dir := b.TempDir()
	file, ready := filepath.Join(dir, "dragoman.yaml"), filepath.Join(dir, "ready.json")
	if err := os.WriteFile(file, []byte("data_dir: "+filepath.Join(dir, "data")+"\n"+settings), 0o600); err != nil {
		b.Fatal(err)
	}
	cmd := program(b, "serve", "--config", file, "--ready-file", ready, "--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--pi-addr", "")
	if binary != "" {
		cmd.Path, cmd.Err = binary, nil
	}
	cmd.Env = withoutVariables(cmd.Env)
	h := &benchHub{}
	startProcess(b, cmd)
	h.pid = cmd.Process.Pid
	h.Addresses = awaitReady(b, ready)
	return h
}

// startProcess starts a process that is interrupted when the benchmark ends.
func startProcess(b *testing.B, cmd *exec.Cmd) {
	b.Helper()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended
		_ = cmd.Wait()
	})
}

// join joins the hub as the Coven agent shout, with a token or without, until the benchmark ends.
func (h *benchHub) join(b *testing.B, token string) {
	b.Helper()
	ctx, leave := context.WithCancel(context.Background())
	joined, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		to := client.Hub{URL: "http://" + h.HTTP, GRPC: h.GRPC, Token: token}
		ended <- service.Joins()[coven.Name](ctx, to, core.Card{ID: "shout", MaxConcurrent: 64, Features: core.FeatureStreaming}, shout,
			func(client.AskFunc) { close(joined) }, slog.New(slog.DiscardHandler))
	}()
	select {
	case <-joined:
	case err := <-ended:
		leave()
		b.Fatalf("the agent: %v", err)
	}
	b.Cleanup(func() {
		leave()
		<-ended
	})
}

// cpu returns the CPU time that the threads of the hub have used, to the nanosecond. Go keeps its
// threads.
func (h *benchHub) cpu(b *testing.B) (used time.Duration) {
	b.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", h.pid))
	if err != nil || len(threads) == 0 {
		b.Skip("the time of a process is read from /proc")
	}
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		var ns int64
		if _, err := fmt.Sscan(string(text), &ns); err != nil {
			b.Fatal(err)
		}
		used += time.Duration(ns)
	}
	return used
}

// percentile returns the value below which the share p of all is. It sorts all.
func percentile(all []time.Duration, p float64) time.Duration {
	slices.Sort(all)
	return all[min(int(float64(len(all))*p), len(all)-1)]
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
