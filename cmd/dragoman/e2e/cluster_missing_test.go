package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

// With two of three hubs gone nobody may take them over: the lists of the last one say whose tasks they
// lack, until those hubs are back.
func TestListsSayWhichHubsTheyMiss(t *testing.T) {
	t.Parallel()
	all := startCluster(t, 3)
	a := all[0]
	missing := func(want string) {
		t.Helper()
		a.until("the tasks at hub a are listed", func() error {
			code, _, stderr := run(t, "tasks", "--hub", a.URL)
			const line = "hubs that are missing here: "
			told := want != "" && strings.Contains(stderr, line+want+";") || want == "" && !strings.Contains(stderr, line)
			return notYet(code == command.ExitDone && told, fmt.Sprintf("got %d and %q, want the hubs %q missing", code, stderr, want))
		})
	}
	missing("")
	all[1].kill()
	all[2].kill()
	missing("b, c")
	t.Run("in the console", func(t *testing.T) {
		p := newBrowser(t, a.URL).open("/")
		p.shows("#missing", "Without what only these hubs know, which do not answer: b, c.")
	})
	all[1].start()
	all[2].start()
	all.untilAllUp()
	missing("")
}
