package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core/coretest"
)

// The disk of one hub is full for a while. All go on, since two others store what it tells, and in
// the end every task has one end.
func TestTheDiskOfOneHubIsFull(t *testing.T) {
	t.Parallel()
	coretest.OnDisk(t, func(t *testing.T, disk *coretest.Disk) {
		hubs := newCluster(t, 3)
		full := hubs[1]
		for i, arg := range full.args {
			if arg == "--data-dir" {
				full.args[i+1] = filepath.Join(disk.Dir, "data")
			}
		}
		hubs.start()
		load := startLoad(hubs)
		t.Cleanup(func() { load.stop() })
		hubs.untilAgents(t)
		load.untilTold(t, 10)
		disk.Fill(t, 0)
		if os.WriteFile(filepath.Join(t.TempDir(), "x"), make([]byte, 1<<10), 0o600) != nil {
			t.Skip("no disk can be mounted here: all hubs have no space")
		}
		full.until("the server of the hub has found the disk full", func() error {
			return notYet(strings.Contains(full.log(), "no space left"), "it has not")
		})
		load.untilTold(t, 30)
		disk.Free(t)
		hubs.untilAllUp()
		hubs.untilAgents(t)
		load.untilTold(t, 10)
		load.settle(t)
	})
}
