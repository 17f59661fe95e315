package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core/coretest"
)

// The disk of one hub is full for a while. The others go on, and in the end every task has one end.
func TestTheDiskOfOneHubIsFull(t *testing.T) {
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
		full.until("the hub says that it cannot write", func() error {
			_ = full.Post(t.Context(), "/v1/notices", map[string]string{"to": "native-0", "topic": "x", "data": strings.Repeat("x", 8<<10)}, &struct{}{})
			return notYet(!full.ready(), "it is ready")
		})
		load.untilTold(t, 20)
		disk.Free(t)
		hubs.untilAllUp()
		hubs.untilAgents(t)
		load.untilTold(t, 10)
		load.settle(t)
	})
}
