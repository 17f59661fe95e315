package e2e

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// The archives in testdata/journals are the data directories of hubs of former versions that were killed while
// a task ran: see .ci/journal, which has asked what is wanted here.
func TestTheJournalsOfEveryVersionOpen(t *testing.T) {
	archives, err := filepath.Glob("testdata/journals/*.tar.gz")
	if err != nil || len(archives) < 3 {
		t.Fatalf("got %q and %v, want the journals of three versions and more", archives, err)
	}
	var numbers strings.Builder
	for n := range 4000 {
		numbers.WriteString(strconv.Itoa(n+1) + "\n")
	}
	for _, archive := range archives {
		t.Run(filepath.Base(archive), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if out, err := exec.Command("tar", "-xzf", archive, "-C", dir).CombinedOutput(); err != nil { //nolint:gosec // an archive of ours
				t.Fatalf("got %v and %s", err, out)
			}
			for _, start := range []string{"the first start", "the next one"} {
				t.Run(start, func(t *testing.T) {
					h := newTestHub(t, func(c *config.Config) {
						c.DataDir = dir
						c.Journal.Age, c.Usage.Age = 100*365*24*time.Hour, 100*365*24*time.Hour // else what is in it expires
					})
					want := map[string]string{
						"hello": "done HELLO", "größer, 日本語": "done GRößER, 日本語", strings.TrimSpace(numbers.String()): "done " + numbers.String(),
						"will it work": "failed internal", "to cancel": "cancelled begun\n", "to be cut off": "failed unreachable begun\n",
					}
					page, err := h.service.Hub().Tasks(t.Context(), core.Principal{ID: "ann", Operator: true}, task.Filter{Limit: 100})
					if err != nil {
						t.Fatal(err)
					}
					for _, one := range page.Tasks {
						said, whole := saidOf(t, h.service.Hub(), one.ID)
						asked := strings.TrimSpace(whole)
						if wanted, known := want[asked]; !known || said != wanted {
							t.Errorf("%.40q: got %.80q, want %.80q, once", asked, said, wanted)
						}
						delete(want, asked)
					}
					for asked := range want {
						t.Errorf("%.40q is missing", asked)
					}
				})
			}
		})
	}
}

// saidOf returns how a task has ended with what was said of it, and what it had asked.
func saidOf(t *testing.T, h *hub.Hub, id core.TaskID) (said, asked string) {
	t.Helper()
	one, err := h.Task(t.Context(), core.Principal{ID: "ann", Operator: true}, id)
	if err != nil {
		t.Fatal(err)
	}
	var end, text strings.Builder
	log := one.Log()
	for e := range log.All() {
		switch b := e.Body.(type) {
		case core.Opened:
			asked = b.Request.Content
		case core.Text:
			text.WriteString(b.Text)
		case core.Done:
			end.WriteString("done ")
		case core.Failed:
			end.WriteString("failed " + string(b.Fault.Code) + " ")
		case core.Cancelled:
			end.WriteString("cancelled ")
		}
	}
	if text.Len() == 0 {
		return strings.TrimSpace(end.String()), asked
	}
	return end.String() + text.String(), asked
}
