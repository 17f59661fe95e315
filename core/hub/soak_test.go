package hub_test

import (
	"context"
	"flag"
	"runtime"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/memory"
	"github.com/dragoman-hub/dragoman/core/task"
)

var soakMemory = flag.Bool("soak.memory", false, "run TestSoakMemory, which takes 2 GiB")

// 80 tasks of 60 MiB, whose agent says them in turns, took 7.1 GB. With a budget of 1 GiB they
// take about that, and those that run when it is full are finished.
func TestSoakMemory(t *testing.T) {
	if !*soakMemory {
		t.Skip("takes 2 GiB: run with -soak.memory")
	}
	const budget, chunk, chunks = 1 << 30, 1 << 20, 60
	// Without a journal that keeps, and without the checks of promises, which keep every text.
	b := memory.New(budget)
	g := &testHub{t, hub.New(hub.Options{Journal: discard{}, Memory: b})}
	t.Cleanup(func() {
		if err := g.hub.Close(context.Background(), "the test is over"); err != nil {
			t.Error(err)
		}
	})
	agent, asker := g.agent("a", able, many), g.connect("r")
	var running []*task.Task
	refused := 0
	for range 80 {
		tk, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{})
		if err != nil {
			g.wantFault("a task beyond the budget", err, core.CodeOverloaded)
			refused++
			continue
		}
		running = append(running, tk)
		for range chunks - 1 {
			g.report(agent, tk, core.Text{Text: strings.Repeat("x", chunk)})
		}
		g.events(asker)
	}
	for _, tk := range running {
		g.report(agent, tk, core.Text{Text: strings.Repeat("y", chunk)})
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("%d tasks of 60 MiB run, %d were refused; %d MiB held, %d MiB of live heap", len(running), refused, b.Held()>>20, m.HeapAlloc>>20)
	if most := uint64(budget + chunk*chunks + 32<<20); m.HeapAlloc > most {
		t.Errorf("got %d MiB of live heap, want at most %d: the budget and one task", m.HeapAlloc>>20, most>>20)
	}
	if refused == 0 || len(running) < 16 {
		t.Errorf("got %d tasks that run and %d refused, want 16 or more, and some", len(running), refused)
	}
	for _, tk := range running {
		g.report(agent, tk, core.Done{})
		g.events(asker)
		if got := len(tk.Answer().Text); got != chunk*chunks {
			t.Errorf("got %d bytes of an answer, want all %d", got, chunk*chunks)
		}
	}
}
