package hub_test

import (
	"flag"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/dragoman-hub/dragoman/core/coretest/plant"
)

var plantFaults = flag.Bool("faults", false, "plant each fault of testdata/faults.json, which the tests of the engine have to find")

// TestTheTestsOfTheEngineFindFaults holds the tests of the hub and of tasks against the faults that they are
// there to find. It takes minutes, so make test-full plants them.
func TestTheTestsOfTheEngineFindFaults(t *testing.T) {
	const root = "../.."
	var find func(t *testing.T, f plant.Fault)
	if *plantFaults {
		find = func(t *testing.T, f plant.Fault) {
			for _, folder := range []string{"core/task", "core/hub"} {
				tests := exec.CommandContext(t.Context(), f.Build(t, root, folder), "-test.short", "-test.failfast", "-test.timeout=2m")
				tests.Dir = filepath.Join(root, folder)
				if tests.Run() != nil {
					return
				}
			}
			t.Errorf("got no failure of a test, want one: %s", f.Why)
		}
	}
	plant.Each(t, root, "testdata/faults.json", find)
}
