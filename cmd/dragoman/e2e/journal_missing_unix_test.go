//go:build unix

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core/coretest/tier"
)

// The file with all tasks is emptied while the hub is down: the next start says how many records are missing, and
// the hub works.
func TestAJournalThatIsEmptiedWhileTheHubIsDownIsSaid(t *testing.T) {
	t.Parallel()
	for how, end := range map[string]func(t *testing.T, h *servedHub, dir string){
		"stopped": func(t *testing.T, h *servedHub, _ string) {
			if printed, code := h.stop(t); code != 0 {
				t.Fatalf("stopping: got exit code %d, want 0:\n%s", code, printed)
			}
		},
		"killed": func(t *testing.T, h *servedHub, dir string) {
			tier.Full(t, "it waits until the hub has written how far its journal is")
			eventually(t, "how far the journal is has been written", func() error {
				text, err := os.ReadFile(filepath.Join(dir, "nats", "marks.json"))
				if err != nil {
					return err
				}
				var marks struct {
					Streams map[string]struct{ Last int }
				}
				err = json.Unmarshal(text, &marks)
				return notYet(err == nil && marks.Streams["dragoman-tasks"].Last > 1, string(text))
			})
			h.kill()
		},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			first := serveHub(t, dir, "interval")
			first.startKeeper(t)
			for range 20 {
				first.ask(t, "x")
			}
			end(t, first, dir)
			if err := os.Truncate(filepath.Join(dir, "nats", "jetstream", "$G", "streams", "dragoman-tasks", "msgs", "1.blk"), 0); err != nil {
				t.Fatal(err)
			}
			for _, want := range []int{1, 0} {
				next := serveHub(t, dir, "interval")
				if got := strings.Count(next.log.String(), `"stream":"dragoman-tasks","records":`); got != want {
					t.Errorf("got %d lines about missing records in the log, want %d:\n%s", got, want, next.log)
				}
				next.startKeeper(t)
				next.ask(t, "after")
				next.kill()
			}
		})
	}
}
