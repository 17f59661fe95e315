package main_test

import (
	"go/ast"
	"go/token"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/auth"
	"github.com/dragoman-hub/dragoman/core"
)

// texts are the constants of all packages, by the path of the package and their names.
type texts map[string]constant

type constant struct {
	value ast.Expr
	in    source
}

func textsOf(all []source) texts {
	found := texts{}
	for _, s := range all {
		for _, d := range s.tree.Decls {
			g, is := d.(*ast.GenDecl)
			if !is || g.Tok != token.CONST {
				continue
			}
			for _, spec := range g.Specs {
				of := spec.(*ast.ValueSpec)
				for i, value := range of.Values {
					found[path.Join(module, path.Dir(s.path))+"."+of.Names[i].Name] = constant{value, s}
				}
			}
		}
	}
	return found
}

// of returns the text of an expression: of a literal, a constant, or that with which it begins.
func (c texts) of(e ast.Expr, in source) (text string, known bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.SelectorExpr:
		pkg, is := e.X.(*ast.Ident)
		for _, i := range in.tree.Imports {
			from, _ := strconv.Unquote(i.Path.Value)
			if is && (i.Name == nil && path.Base(from) == pkg.Name || i.Name != nil && i.Name.Name == pkg.Name) {
				if of, here := c[from+"."+e.Sel.Name]; here {
					return c.of(of.value, of.in)
				}
			}
		}
	case *ast.BinaryExpr:
		text, known = c.of(e.X, in)
		text += "x"
	}
	return text, known
}

// given returns the name that the hub gives to a principal there, if it does.
func (c texts) given(n ast.Node, in source) (name string, is bool) {
	switch n := n.(type) {
	case *ast.CompositeLit:
		if typ, is := n.Type.(*ast.SelectorExpr); !is || typ.Sel.Name != "Principal" {
			return "", false
		}
		for _, member := range n.Elts {
			if kv, is := member.(*ast.KeyValueExpr); is && kv.Key.(*ast.Ident).Name == "ID" {
				return c.of(kv.Value, in)
			}
		}
	case *ast.CallExpr:
		called, is := n.Fun.(*ast.Ident)
		if of, selects := n.Fun.(*ast.SelectorExpr); selects {
			called, is = of.Sel, true
		}
		if is && called.Name == "ComponentIdentity" {
			name, is = c.of(n.Args[0], in)
			return core.PartPrefix + name, is
		}
	}
	return "", false
}

// The names come from the source: a part of the hub, or a way into an open hub, that gets a name of its own gets one
// that no credential proves.
func TestNoCredentialHasANameThatTheHubGives(t *testing.T) {
	all := sources(t)
	constants, found := textsOf(all), map[string]string{}
	for _, s := range all {
		if strings.Contains(s.path, "coretest") {
			continue
		}
		ast.Inspect(s.tree, func(n ast.Node) bool {
			if name, is := constants.given(n, s); is {
				found[name] = s.path
			}
			return true
		})
	}
	for _, name := range []string{"local", "mcp", "client", "editor", "stdio", "hub metrics", "hub x"} {
		if found[name] == "" {
			t.Errorf("got no %q in the source, want the test to find the names that the hub gives", name)
		}
	}
	for name, where := range found {
		if auth.CheckPrincipal(name) == nil {
			t.Errorf("%s: the hub gives the name %q, and a credential may have it, too: want it among those of core.IsHubs", where, name)
		}
	}
}
