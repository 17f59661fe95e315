package main_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// testName matches a test on the page of failures: its package and its function.
var testName = regexp.MustCompile("`([a-z0-9/]+)\\.((?:Test|Fuzz)[A-Za-z0-9]+)`")

func TestTheTestsOfTheFailuresPageExist(t *testing.T) {
	page := failuresPage(t)
	tests := map[string]map[string]string{} // by package and name: the file
	for _, m := range testName.FindAllStringSubmatch(page, -1) {
		dir, name := m[1], m[2]
		if tests[dir] == nil {
			tests[dir] = testsIn(t, dir)
		}
		if tests[dir][name] == "" {
			t.Errorf("got no %s in %s, want the test that the page names", name, dir)
		}
	}
	if len(tests) == 0 {
		t.Error("got no test on the page, want one per line")
	}
}

func TestTheFailuresPageIsComplete(t *testing.T) {
	page := failuresPage(t)
	dirs := map[string]bool{}
	for _, pattern := range []string{"../../*/failures*_test.go", "../../*/*/failures*_test.go", "../../*/*/*/failures*_test.go", "../../*/*/*/*/failures*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			dirs[strings.TrimPrefix(filepath.Dir(file), "../../")] = true
		}
	}
	for dir := range dirs {
		for name, file := range testsIn(t, dir) {
			if !strings.HasPrefix(file, "failures") || file == "failures_index_test.go" {
				continue
			}
			if test := dir + "." + name; !strings.Contains(page, "`"+test+"`") {
				t.Errorf("got no line with %s (%s), want one", test, file)
			}
		}
	}
	conversations, err := filepath.Glob("../../schemas/conversations/failures/*.txtar")
	if err != nil || len(dirs) == 0 || len(conversations) == 0 {
		t.Fatalf("got %d files with tests and %d conversations (%v), want some", len(dirs), len(conversations), err)
	}
	for _, path := range conversations {
		if name := filepath.Base(path); !strings.Contains(page, "/failures/"+name+")") {
			t.Errorf("got no line with the conversation %s, want one", name)
		}
	}
}

func failuresPage(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(docs, "failures.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// testsIn returns the tests of a package of this module, each with its file.
func testsIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	tests, set := map[string]string{}, token.NewFileSet()
	for _, file := range files {
		tree, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range tree.Decls {
			f, ok := d.(*ast.FuncDecl)
			if ok && f.Recv == nil && (strings.HasPrefix(f.Name.Name, "Test") || strings.HasPrefix(f.Name.Name, "Fuzz")) {
				tests[f.Name.Name] = filepath.Base(file)
			}
		}
	}
	return tests
}
