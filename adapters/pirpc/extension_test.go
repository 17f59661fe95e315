package pirpc_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pirpc"
)

// withTools has the tools of a hub and returns the options for them.
func withTools(dir string) pirpc.Options {
	return pirpc.Options{ExtensionDir: dir, Tools: func() pirpc.Tools { return pirpc.Tools{URL: "http://127.0.0.1:1/mcp", Token: "the-secret"} }}
}

// extensionOf returns the path of the extension that a process was started with.
func (k *kid) extensionOf() string {
	i := slices.Index(k.args, "--extension")
	if i < 0 || i+1 == len(k.args) {
		k.Fatalf("got the arguments %q, want an extension", k.args)
	}
	return k.args[i+1]
}

func TestTheTokenForTheToolsOfTheHubIsInTheEnvironmentAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pi-rpc", "pi")
	for life := range 2 {
		play(t, withTools(dir), func(n *nursery) {
			k := <-n.kids
			if want := []string{"DRAGOMAN_MCP_URL=http://127.0.0.1:1/mcp", "DRAGOMAN_MCP_TOKEN=the-secret"}; !slices.Equal(k.env, want) {
				t.Errorf("got the variables %q, want %q", k.env, want)
			}
			path := k.extensionOf()
			if path != filepath.Join(dir, "dragoman.js") {
				t.Errorf("got the extension %s, want it in %s", path, dir)
			}
		})
		files, err := os.ReadDir(dir)
		if err != nil || len(files) != 1 {
			t.Fatalf("got %v (%v), want the extension alone", files, err)
		}
		code, err := os.ReadFile(filepath.Join(dir, "dragoman.js"))
		if err != nil || strings.Contains(string(code), "the-secret") || !strings.Contains(string(code), "registerTool") {
			t.Errorf("got the extension %s (%v), want it without the token", code, err)
		}
		if life == 0 { // as an earlier version of the hub has left it
			if err := os.WriteFile(filepath.Join(dir, "dragoman.js"), []byte("const hub = 1;"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestAnExtensionWithoutADirectoryIsGoneAfterTheRun(t *testing.T) {
	var path string
	play(t, withTools(""), func(n *nursery) {
		path = (<-n.kids).extensionOf()
		if _, err := os.Stat(path); err != nil {
			t.Errorf("got %v, want the extension there", err)
		}
	})
	if _, err := os.Stat(filepath.Dir(path)); !os.IsNotExist(err) {
		t.Errorf("got %v, want the directory of the extension removed", err)
	}
}

func TestAnExtensionThatCannotBeWrittenIsTheReasonOfTheFailure(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	play(t, withTools(file), func(n *nursery) {
		if err := n.end(); err == nil || !strings.Contains(err.Error(), "the extension of pi") || !strings.Contains(err.Error(), file) {
			t.Errorf("got %v, want the error with the path", err)
		}
	})
}
