package hub_test

import (
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// logbook is a log that a test reads while others write.
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

// read returns what was written since the last time.
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
