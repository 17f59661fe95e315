package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
)

// A span is where a function stands in its file.
type span struct {
	name        string
	first, last token.Position // the braces of its body
}

// spans returns the functions of a file. A literal belongs to the function around it; one outside of all
// functions stands for itself.
func spans(file string) ([]span, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var all []span
	ast.Inspect(tree, func(n ast.Node) bool {
		switch f := n.(type) {
		case *ast.FuncDecl:
			if f.Body != nil {
				all = append(all, spanOf(set, nameOf(f), f.Body))
			}
			return false
		case *ast.FuncLit:
			all = append(all, spanOf(set, fmt.Sprint("func at line ", set.Position(f.Pos()).Line), f.Body))
			return false
		}
		return true
	})
	return all, nil
}

func spanOf(set *token.FileSet, name string, body *ast.BlockStmt) span {
	return span{name, set.Position(body.Lbrace), set.Position(body.Rbrace)}
}

// nameOf returns the name of a function, with the type of its receiver.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return f.Name.Name
	}
	of := f.Recv.List[0].Type
	for {
		switch t := of.(type) {
		case *ast.StarExpr:
			of = t.X
		case *ast.IndexExpr:
			of = t.X
		case *ast.IndexListExpr:
			of = t.X
		case *ast.Ident:
			return t.Name + "." + f.Name.Name
		default:
			return f.Name.Name
		}
	}
}

// contains reports whether a block begins in the function.
func (s span) contains(b block) bool {
	return !b.before(s.first) && b.before(s.last)
}

// begins reports whether a block is the first of the function.
func (s span) begins(b block) bool {
	return b.line == s.first.Line && b.column == s.first.Column
}

// before reports whether a block begins before a position.
func (b block) before(p token.Position) bool {
	return b.line < p.Line || b.line == p.Line && b.column < p.Column
}
