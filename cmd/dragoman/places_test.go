package main_test

import (
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

// numbersOf are the files of dialects that may compare numbers, and of what they are.
var numbersOf = map[string]string{
	"adapters/parallax/tasks.go": "the progress of an agent, which counts from 1 itself",
	"adapters/pi/server.go":      "a gap, which has no epoch",
}

// After a takeover the number of an event says nothing without its epoch: a reader that keeps a place of its own keeps a
// core.Cursor, and compares with Event.After or Cursor.Compare.
func TestNoDialectComparesEventsByTheirNumbersAlone(t *testing.T) {
	used := map[string]bool{}
	number := func(e ast.Expr) bool {
		switch e := e.(type) {
		case *ast.SelectorExpr:
			return e.Sel.Name == "Seq"
		case *ast.CallExpr:
			of, is := e.Fun.(*ast.SelectorExpr)
			return is && of.Sel.Name == "End" && len(e.Args) == 0
		}
		return false
	}
	for _, s := range sources(t) {
		if !strings.HasPrefix(s.path, "adapters/") || strings.HasPrefix(s.path, "adapters/nats/") {
			continue // the journal has each number of a task once
		}
		ast.Inspect(s.tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				switch n.Op {
				case token.LSS, token.LEQ, token.GTR, token.GEQ:
					if number(n.X) || number(n.Y) {
						used[s.path] = true
					}
				}
			case *ast.SelectorExpr:
				used[s.path] = used[s.path] || n.Sel.Name == "AfterSeq"
			}
			return true
		})
	}
	for path, is := range used {
		if is && numbersOf[path] == "" {
			t.Errorf("%s compares events by their numbers: want their places, with Event.After or Cursor.Compare", path)
		}
	}
	for path := range numbersOf {
		if !used[path] {
			t.Errorf("%s compares no numbers: take it out of the list", path)
		}
	}
}
