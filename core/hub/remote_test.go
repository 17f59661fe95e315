package hub_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core/hub"
)

// A reader of the engine does not meet what a cluster is made of.
func TestTheEngineKnowsOfOtherHubsOnlyWhatRemoteSays(t *testing.T) {
	if n := reflect.TypeFor[hub.Remote]().NumMethod(); n > 10 {
		t.Errorf("Remote has %d methods, want at most 10", n)
	}
	words := regexp.MustCompile(`(?i)mirror|takeover|takenover|inherit|estate|otherhub|hubs|claim(s|key|ing)|lives|^life|^move|moves$|moved`)
	imports := regexp.MustCompile(`/core/cluster|/adapters/|/transports/|/nats`)
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("got the files %q and %v", files, err)
	}
	set := token.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range f.Imports {
			if path, _ := strconv.Unquote(i.Path.Value); imports.MatchString(path) {
				t.Errorf("%s imports %s", name, path)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if id, is := n.(*ast.Ident); is && words.MatchString(id.Name) {
				t.Errorf("%s has the name %s", set.Position(id.Pos()), id.Name)
			}
			return true
		})
	}
}
