package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core/memory"
)

// TestEveryMemoryIsInThePageOfMemories finds the caches in the code, and the kinds of bytes that a hub counts, so
// that a new one is not there without its bounds.
func TestEveryMemoryIsInThePageOfMemories(t *testing.T) {
	text, err := os.ReadFile("../../docs/memory.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	makes := regexp.MustCompile(`\b(lru|dedup)\.New\b`)
	found := 0
	for _, root := range []string{"../../core", "../../adapters", "../../cmd", "../../transports"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "doc.go") {
				return err
			}
			code, err := os.ReadFile(path)
			if err != nil || !makes.Match(code) {
				return err
			}
			found++
			if name := strings.TrimPrefix(filepath.ToSlash(path), "../../"); !strings.Contains(page, "`"+name+"`") {
				t.Errorf("docs/memory.md: got no word of the cache in %s, want a row with its bounds", name)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 20 {
		t.Errorf("got %d files with caches, want those that there are", found)
	}
	for _, k := range memory.Kinds() {
		if !strings.Contains(page, "`"+k.String()+"`") {
			t.Errorf("docs/memory.md: got no word of the kind %q of limits.memory", k)
		}
	}
}
