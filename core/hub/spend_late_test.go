package hub_test

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/usage"
	"github.com/google/go-cmp/cmp"
)

// An agent that cannot be cancelled continues after its task was cancelled and reports its
// usage. The usage counts once, also over restarts, and no event follows the end.
func TestTheUsageOfACancelledTaskCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, kept := &coretest.MemoryUsage{}, journal.NewMemory(journal.Retention{})
		opts := daily(usage.ByRequester, "asker", 100)
		opts.UsageStore, opts.Journal = store, kept
		for life := range 2 {
			h := hub.New(opts)
			g := &testHub{t, h}
			if err := h.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			a, asker := g.agent("a", 0), g.connect("asker")
			if life == 0 {
				task := g.ask(asker, "a")
				g.report(a, task, core.Usage{Input: 10})
				if err := asker.Cancel(task.ID(), "never mind"); err != nil {
					t.Fatal(err)
				}
				ended := len(task.Events())
				for _, n := range []int64{20, 70} {
					g.wantFault("usage after the end", a.Report(task.ID(), core.Usage{Input: n}, nil), core.CodeConflict)
					g.sleep(time.Second) // the store has it
				}
				g.wantFault("the agent's own end", a.Report(task.ID(), core.Done{}, nil), core.CodeConflict)
				g.wantFault("usage after that", a.Report(task.ID(), core.Usage{Input: 1000}, nil), core.CodeConflict)
				if got := len(task.Events()); got != ended {
					t.Errorf("got %d events, want the %d up to the end", got, ended)
				}
			}
			want := usage.Total{Key: "asker", Tokens: core.Usage{Input: 100}, Events: 3, Unpriced: 3}
			if d := cmp.Diff(want, g.total(usage.ByRequester, "asker")); d != "" {
				t.Errorf("life %d (-want +got):\n%s", life, d)
			}
			_, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "more"}, hub.OpenOptions{})
			g.wantFault("beyond the budget", err, core.CodeBudget)
			a.Close(nil)
			asker.Close(nil)
			if err := h.Close(t.Context(), "restart"); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// logbook is a log buffer that is safe for concurrent use.
type logbook struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// read returns the output since the last call.
func (l *logbook) read() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}

func TestTheLogDistinguishesSpentFromNearlySpentBudgets(t *testing.T) {
	opts, log := daily(usage.ByAgent, "a", 100), &logbook{}
	opts.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	onBudget(t, opts, func(g *testHub) {
		a, asker := g.agent("a", 0), g.connect("asker")
		task := g.ask(asker, "a")
		for _, tt := range []struct {
			output int64
			want   string
		}{{79, ""}, {5, "a budget is nearly spent"}, {5, ""}, {20, "a budget is spent: new tasks are refused"}, {20, ""}} {
			g.report(a, task, core.Usage{Output: tt.output})
			if got := log.read(); !strings.Contains(got, tt.want) || (tt.want == "") != (got == "") {
				t.Errorf("%d more: got the log %q, want %q", tt.output, got, tt.want)
			}
		}
		g.report(a, task, core.Done{})
	})
}
