package peer_test

import (
	"bytes"
	"flag"
	"fmt"
	"os/exec"
	"regexp"
	"testing"

	"github.com/dragoman-hub/dragoman/core/coretest/plant"
)

var simFaults = flag.Int("sim.faults", 0, "plant each fault of testdata/faults.json, which the simulation has to find within so many schedules")

// TestTheSimulationFindsFaults holds the simulation against the faults that it is there to find.
// It takes minutes, so make simulate-faults runs it.
func TestTheSimulationFindsFaults(t *testing.T) {
	const root = "../.."
	var look func(t *testing.T, f plant.Fault)
	if *simFaults > 0 {
		look = func(t *testing.T, f plant.Fault) { find(t, f.Build(t, root, "adapters/peer")) }
	}
	plant.Each(t, root, "testdata/faults.json", look)
}

var foundAfter = regexp.MustCompile(`(\d+) schedules in (\S+):`)

// find runs the simulation until it finds something.
func find(t *testing.T, program string) {
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^TestSimulate$", "-test.v", fmt.Sprintf("-sim.schedules=%d", *simFaults), "-sim.violations=1")
	out, err := cmd.CombinedOutput()
	after := foundAfter.FindSubmatch(out)
	switch {
	case err == nil:
		t.Errorf("got nothing in %d schedules", *simFaults)
	case after == nil:
		t.Errorf("%v\n%s", err, out)
	default:
		_, what, _ := bytes.Cut(out, []byte("shows all of it):\n"))
		what, _, _ = bytes.Cut(what, []byte{'\n'})
		t.Logf("found within %s schedules, %s: %s", after[1], after[2], bytes.TrimSpace(what))
	}
}
