package coretest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ReadFiles reads the files that a pattern matches, by name without the ending. It fails
// the test if there are none.
func ReadFiles(t testing.TB, pattern string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: got %d files and %v, want some", pattern, len(paths), err)
	}
	all := map[string][]byte{}
	for _, p := range paths {
		name := strings.TrimSuffix(filepath.Base(p), filepath.Ext(p))
		if all[name], err = os.ReadFile(p); err != nil {
			t.Fatal(err)
		}
	}
	return all
}
