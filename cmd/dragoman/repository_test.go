package main_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	// root is the path of the repository.
	root = "../.."
	// maxLines is the maximum length of a file. Most are far shorter.
	maxLines = 500
)

// A source is a Go file that is neither generated nor a test.
type source struct {
	path  string // relative to root
	lines int
	tree  *ast.File
}

func TestRepositoryHasNoOverlongFile(t *testing.T) {
	for _, s := range sources(t) {
		if s.lines > maxLines {
			t.Errorf("%s has %d lines, want at most %d: split it by idea", s.path, s.lines, maxLines)
		}
	}
}

func TestRepositoryDescribesEveryPackage(t *testing.T) {
	described := make(map[string]bool)
	for _, s := range sources(t) {
		dir, name := filepath.Split(s.path)
		if name != "doc.go" {
			described[dir] = described[dir] || false
			continue
		}
		described[dir] = true
		begin := "Package " + s.tree.Name.Name + " "
		if got := s.tree.Doc.Text(); s.tree.Name.Name == "main" && got == "" || s.tree.Name.Name != "main" && !strings.HasPrefix(got, begin) {
			t.Errorf("%s begins %.40q, want %q and the purpose of the package", s.path, got, begin)
		}
	}
	for dir, ok := range described {
		if !ok {
			t.Errorf("%s has no doc.go: write one with the purpose of the package", dir)
		}
	}
}

func TestRepositoryRegistersNothingInInit(t *testing.T) {
	for _, s := range sources(t) {
		for _, d := range s.tree.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s has a func init, want none: use a table in cmd or a constructor", s.path)
			}
		}
	}
}

// sources returns every Go file of the repository except tests and generated ones.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	set := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if path != root && ignored(path) {
				return filepath.SkipDir
			}
			return nil
		case !strings.HasSuffix(path, ".go"), strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		tree, err := parser.ParseFile(set, path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if ast.IsGenerated(tree) {
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		all = append(all, source{path: name, lines: bytes.Count(text, []byte("\n")), tree: tree})
		return nil
	})
	if err != nil {
		t.Fatalf("read the repository: %v", err)
	}
	if len(all) == 0 {
		t.Fatalf("found no Go file under %s, want many", root)
	}
	return all
}

// ignored reports whether a directory has no sources: the go command ignores it, or make, npm and
// the hub write to it.
func ignored(path string) bool {
	name := filepath.Base(path)
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || name == "node_modules" ||
		path == filepath.Join(root, "bin") || path == filepath.Join(root, "data")
}
