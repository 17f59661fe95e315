package hub_test

import (
	"flag"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/dragoman-hub/dragoman/core/coretest/plant"
)

// failure is how a test says that it failed, and not that it took too long or could not run.
var failure = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)

var plantFaults = flag.Bool("faults", false, "plant each fault of testdata/faults.json, which the tests of the engine have to find")

// TestTheTestsOfTheEngineFindFaults holds the tests of the hub and of tasks against the faults that they are
// there to find. It takes minutes, so make test-full plants them.
func TestTheTestsOfTheEngineFindFaults(t *testing.T) {
	const root = "../.."
	// failed returns the first test that fails in a folder with a fault.
	failed := func(t *testing.T, f plant.Fault, folder string) string {
		tests := exec.CommandContext(t.Context(), f.Build(t, root, folder), "-test.short", "-test.failfast", "-test.timeout=2m")
		tests.Dir = filepath.Join(root, folder)
		out, err := tests.CombinedOutput()
		found := failure.FindSubmatch(out)
		switch {
		case err == nil:
			return ""
		case found == nil:
			t.Fatalf("%s: got %v, want a test that fails:\n%s", folder, err, out)
		}
		return string(found[1])
	}
	folders := []string{"core/task", "core/hub"}
	var find func(t *testing.T, f plant.Fault)
	if *plantFaults {
		for _, folder := range folders {
			none := plant.Fault{File: "core/hub/hub.go"} // it puts an empty line in the place of one
			if name := failed(t, none, folder); name != "" {
				t.Fatalf("without a fault: got %s failed, want all tests passed", name)
			}
		}
		find = func(t *testing.T, f plant.Fault) {
			for _, folder := range folders {
				if name := failed(t, f, folder); name != "" {
					t.Log("found by " + name)
					return
				}
			}
			t.Errorf("got no failure of a test, want one: %s", f.Why)
		}
	}
	plant.Each(t, root, "testdata/faults.json", find)
}
