package plant

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A Fault is a change of one line that breaks a promise.
type Fault struct {
	File string // below the root of the repository
	Old  string // a line that is there once
	New  string // the line in its place
	Why  string // what breaks
}

// Each calls find for each fault of a list, a JSON array of Fault, in a subtest. It fails where a line is
// not there once, which is also how a list is kept current where find is nil.
func Each(t *testing.T, root, list string, find func(t *testing.T, f Fault)) {
	t.Helper()
	raw, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	var all []Fault
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	for i, f := range all {
		t.Run(fmt.Sprintf("%d %s", i+1, f.Why), func(t *testing.T) {
			source, err := os.ReadFile(filepath.Join(root, f.File))
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(source), "\n"+f.Old+"\n"); n != 1 {
				t.Fatalf("%s has the line %d times, want it once: %s", f.File, n, f.Old)
			}
			if find != nil {
				find(t, f)
			}
		})
	}
}

// Build returns a test program of a package, a folder below root, with the fault in it.
func (f Fault) Build(t *testing.T, root, folder string) (program string) {
	t.Helper()
	dir := t.TempDir()
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	file, err := filepath.Abs(filepath.Join(root, f.File))
	var source []byte
	if err == nil {
		source, err = os.ReadFile(file)
	}
	if err == nil {
		err = os.WriteFile(changed, []byte(strings.Replace(string(source), "\n"+f.Old+"\n", "\n"+f.New+"\n", 1)), 0o600)
	}
	if err == nil {
		err = os.WriteFile(overlay, fmt.Appendf(nil, `{"Replace": {%q: %q}}`, file, changed), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(dir, "faulty.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", program, "./"+folder)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}
