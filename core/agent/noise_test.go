package agent_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core/agent"
)

func TestABrokenAgentCausesAFewWarningsAlone(t *testing.T) {
	var log strings.Builder
	counted := 0
	n := agent.NewNoise(slog.New(slog.NewTextHandler(&log, nil)), func(name string) {
		if name == "garbage" {
			counted++
		}
	})
	for range 30 {
		n.Skip("garbage", "a line was skipped", "line", agent.Excerpt([]byte(strings.Repeat("x", 300))))
	}
	if got := strings.Count(log.String(), "level=WARN"); got != 20 || counted != 30 {
		t.Errorf("got %d warnings and %d counted, want 20 and 30", got, counted)
	}
	if !strings.Contains(log.String(), "line="+strings.Repeat("x", 200)+"...\n") {
		t.Errorf("got %.300s, want the first 200 bytes of the line", log.String())
	}
}
