package core_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core/coretest"
)

var update = flag.Bool("update", false, "write the golden files")

// wantGolden compares the JSON form of values with a file in testdata that has one a line,
// and reads them back from it: members are added, never renamed or removed, since
// journals, audits, clients and other hubs keep what was written long ago.
func wantGolden[T any](t *testing.T, file string, values []T) {
	t.Helper()
	golden := filepath.Join("testdata", file)
	var form bytes.Buffer
	for _, v := range values {
		line, err := json.Marshal(v)
		if err != nil {
			t.Fatalf("writing %+v: got %v, want no error", v, err)
		}
		form.Write(append(line, '\n'))
	}
	if *update {
		if err := os.WriteFile(golden, form.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(kept), "\n"), strings.Split(form.String(), "\n")); d != "" {
		t.Errorf("what is written (-want +got):\n%s", d)
	}
	var read []T
	for line := range strings.Lines(string(kept)) {
		var v T
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("reading %s: got %v, want no error", line, err)
		}
		read = append(read, v)
	}
	if d := cmp.Diff(values, read, coretest.Compare); d != "" {
		t.Errorf("what is read (-want +got):\n%s", d)
	}
}
