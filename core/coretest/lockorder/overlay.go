package lockorder

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	lockType   = regexp.MustCompile(`\bsync\.(RW)?Mutex\b`)
	unnamed    = regexp.MustCompile(`[^A-Za-z0-9]`)
	importSync = regexp.MustCompile(`(?m)^(import |\t)"sync"$`)
)

const path = "github.com/dragoman-hub/dragoman/core/coretest/lockorder"

// Overlay writes the files of some folders below root with the locks of this package, but for tests and what is
// for tests, into dir, and returns the file for the flag -overlay of the go command.
func Overlay(root, dir string, folders ...string) (file string, err error) {
	replace := map[string]string{}
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(at string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(at, ".go") || strings.HasSuffix(at, "_test.go") || strings.Contains(at, "coretest") {
				return err
			}
			source, err := os.ReadFile(at)
			if err != nil || !lockType.Match(source) {
				return err
			}
			name, err := filepath.Rel(root, at)
			if err != nil {
				return err
			}
			changed := filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
			replace[at] = changed
			return os.WriteFile(changed, withOwn(name, string(source)), 0o600)
		})
		if err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file = filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, text, 0o600)
}

// withOwn returns a source with the locks of this package, each of which is named after the file and its line there.
func withOwn(name, source string) []byte {
	lines := strings.SplitAfter(source, "\n")
	for i, line := range lines {
		code, comment, has := strings.Cut(line, "//")
		code = lockType.ReplaceAllString(code, fmt.Sprintf("lockorder.${1}Mutex[struct{ %s_%d int }]", "X_"+unnamed.ReplaceAllString(strings.TrimSuffix(name, ".go"), "_"), i+1))
		if has {
			comment = "//" + comment
		}
		lines[i] = code + comment
	}
	source = strings.Join(lines, "")
	imports := `$1"sync"; import lockorder "` + path + `"`
	if strings.Contains(source, "\nimport (\n") {
		imports = "$1\"sync\"\n\tlockorder \"" + path + `"`
	}
	return []byte(importSync.ReplaceAllString(source, imports) + "\nvar _ sync.Mutex // the file may use nothing else of the package\n")
}
