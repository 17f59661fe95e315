package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// soakEnd is the end of a task, as its reader was told.
type soakEnd struct {
	Task string
	End  string
}

func (s *soak) saveEnds(t *testing.T) {
	t.Helper()
	var text strings.Builder
	for _, e := range s.ends {
		fmt.Fprintf(&text, "%s %s\n", e.Task, e.End)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "ends"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// checkStored compares what readers of the slice before were told with what the hub has now. What
// is older than the journal keeps is unknown.
func (s *soak) checkStored(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "ends"))
	if err != nil {
		t.Logf("the slice before left no ends: %v", err)
		return
	}
	same, unknown := 0, 0
	for line := range strings.Lines(string(text)) {
		id, want, _ := strings.Cut(strings.TrimSpace(line), " ")
		r := soakReader{soak: s}
		r.task = id
		err := r.read(t.Context())
		switch {
		case err == nil && r.end == want:
			same++
		case isUnknownTask(err):
			unknown++
		default:
			t.Errorf("after the restart task %s ends as %q (%v), want %q", id, r.end, err, want)
		}
	}
	t.Logf("of the slice before %d ends are as they were told, %d tasks are older than the journal", same, unknown)
}
