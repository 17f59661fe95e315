package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every line of the threat model about what is defended names a test that exists.
func TestEveryLineOfTheThreatModelHasItsTest(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(docs, "threat-model.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]map[string]string{} // by package and name: the file
	lines, held := 0, false                 // held: the table has a column of tests
	for line := range strings.Lines(string(b)) {
		switch {
		case !strings.HasPrefix(line, "|"):
			held = false
		case strings.HasSuffix(strings.TrimSpace(line), "| test |"):
			held = true
		case held && !strings.HasPrefix(line, "|---"):
			lines++
			if !testName.MatchString(line) {
				t.Errorf("got no test for the line %s, want one", strings.TrimSpace(line))
			}
		}
		for _, m := range testName.FindAllStringSubmatch(line, -1) {
			dir, name := m[1], m[2]
			if tests[dir] == nil {
				tests[dir] = testsIn(t, dir)
			}
			if tests[dir][name] == "" {
				t.Errorf("got no %s in %s, want the test that the page names", name, dir)
			}
		}
	}
	if lines < 40 {
		t.Errorf("got %d lines with tests, want those of all tables", lines)
	}
}
