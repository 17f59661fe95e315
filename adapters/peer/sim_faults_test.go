package peer_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var simFaults = flag.Int("sim.faults", 0, "plant each fault of testdata/faults.json, which the simulation has to find within so many schedules")

// fault is a change of one line that breaks a promise.
type fault struct{ File, Old, New, Why string }

// TestTheSimulationFindsFaults holds the simulation against the faults that it is there to find.
// It takes minutes, so make simulate-faults runs it.
func TestTheSimulationFindsFaults(t *testing.T) {
	const root = "../.."
	raw, err := os.ReadFile("testdata/faults.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []fault
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	for i, f := range all {
		t.Run(fmt.Sprintf("%d %s", i+1, f.Why), func(t *testing.T) {
			source, err := os.ReadFile(filepath.Join(root, f.File))
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(source), f.Old+"\n"); n != 1 {
				t.Fatalf("%s has the line %d times, want it once: %s", f.File, n, f.Old)
			}
			if *simFaults > 0 {
				find(t, plant(t, root, f, string(source)))
			}
		})
	}
}

// plant returns a test program with the fault in it.
func plant(t *testing.T, root string, f fault, source string) (program string) {
	dir := t.TempDir()
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	file, err := filepath.Abs(filepath.Join(root, f.File))
	if err == nil {
		err = os.WriteFile(changed, []byte(strings.Replace(source, f.Old+"\n", f.New+"\n", 1)), 0o600)
	}
	if err == nil {
		err = os.WriteFile(overlay, fmt.Appendf(nil, `{"Replace": {%q: %q}}`, file, changed), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(dir, "faulty.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", overlay, "-o", program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
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
