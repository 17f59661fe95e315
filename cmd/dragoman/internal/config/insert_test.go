package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

const added = "{name: new, command: [a]}"

func TestAnEntryIsAddedAndTheRestOfTheFileStaysAsItIs(t *testing.T) {
	for name, c := range map[string]struct{ before, after string }{
		"no file":                       {"", "agents:\n  - " + added + "\n"},
		"comments alone":                {"# mine\n", "# mine\nagents:\n  - " + added + "\n"},
		"no list":                       {"http_addr: :1 # mine\n", "http_addr: :1 # mine\nagents:\n  - " + added + "\n"},
		"no end of the line":            {"http_addr: :1", "http_addr: :1\nagents:\n  - " + added + "\n"},
		"a list at the end":             {"agents:\n  # first\n  - {name: a} # one\n", "agents:\n  # first\n  - {name: a} # one\n  - " + added + "\n"},
		"a list without an end of line": {"agents:\n- name: a", "agents:\n- name: a\n- " + added + "\n"},
		"a list before other settings": {
			"agents:\n    - name: a\n      command: [b]\n      # of a\n    # of all\n\n# of limits\nlimits: {hops: 3}\n",
			"agents:\n    - name: a\n      command: [b]\n      # of a\n    # of all\n    - " + added + "\n\n# of limits\nlimits: {hops: 3}\n",
		},
		"text of many lines":  {"agents:\n  - name: a\n    model: |\n      # b\n\nlimits: {}\n", "agents:\n  - name: a\n    model: |\n      # b\n  - " + added + "\n\nlimits: {}\n"},
		"a list in one line":  {"agents: [{name: a}] # mine\n", "agents: [" + added + ", {name: a}] # mine\n"},
		"an empty list":       {"agents: []\npacks: []\n", "agents: [" + added + "]\npacks: []\n"},
		"a list that is void": {"agents: # none yet\npacks: []\n", "agents: # none yet\n  - " + added + "\npacks: []\n"},
		"an object":           {`{"http_addr": ":1"}`, `{agents: [` + added + `], "http_addr": ":1"}`},
		"lines of Windows":    {"agents:\r\n  - {name: a}\r\nlimits: {}\r\n", "agents:\r\n  - {name: a}\r\n  - " + added + "\nlimits: {}\r\n"},
	} {
		got, err := config.AddEntry([]byte(c.before), "agents", added)
		if d := cmp.Diff(c.after, string(got)); d != "" || err != nil {
			t.Errorf("%s: got %v and (-want +got)\n%s", name, err, d)
		}
	}
}

func TestAFileThatCannotBeExtendedIsLeftToItsAuthor(t *testing.T) {
	for _, file := range []string{"agents: null\n", "a: &x [{name: a}]\nagents: *x\n", "http_addr: :1\n...\n"} {
		if got, err := config.AddEntry([]byte(file), "agents", added); !errors.Is(err, config.ErrByHand) {
			t.Errorf("%q: got %q and %v, want ErrByHand", file, got, err)
		}
	}
}

func TestAnEntryIsWrittenInOneLine(t *testing.T) {
	for want, entry := range map[string]any{
		`{name: a, dialect: editor, command: [a-b, --acp], env: [A, B=c d], cwd: /x, mode: default, options: {web: "true"}}`: config.Agent{
			Name: "a", Dialect: "editor", Process: config.Process{Command: []string{"a-b", "--acp"}, Env: []string{"A", "B=c d"}, Dir: "/x"}, Mode: "default", Options: config.Options{"web": "true"},
		},
		`{name: b, command: ["5", "true", 'x: y', ""]}`: config.Pack{Name: "b", Process: config.Process{Command: []string{"5", "true", "x: y", ""}}},
	} {
		if got, err := config.EntryText(entry); got != want || err != nil {
			t.Errorf("got %s (%v), want %s", got, err, want)
		}
	}
}

// Whatever a file says, an entry is added so that the rest stays, or not at all.
func FuzzAddEntry(f *testing.F) {
	f.Add("agents:\n  - {name: a}\nlimits: {hops: 3}\n")
	f.Add("{agents: [], packs: []}")
	f.Add("# x\nagents:\n")
	f.Fuzz(func(t *testing.T, file string) {
		before, err := config.ReadYAML([]byte(file))
		if err != nil {
			return
		}
		got, err := config.AddEntry([]byte(file), "packs", added)
		if err != nil {
			return
		}
		after, err := config.ReadYAML(got)
		if err != nil {
			t.Fatalf("%q: got %q, which is no YAML: %v", file, got, err)
		}
		delete(before.Values, "packs")
		if all, _ := after.Values["packs"].([]any); len(all) == 0 {
			t.Fatalf("%q: got %q, want the entry in it", file, got)
		}
		delete(after.Values, "packs")
		if d := cmp.Diff(before.Values, after.Values); d != "" && len(before.Values)+len(after.Values) > 0 {
			t.Errorf("%q: got other settings (-before +after)\n%s", file, d)
		}
	})
}

func TestTheFileOfTheDirectoryIsFoundBeforeThatOfTheUser(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	t.Chdir(dir)
	t.Setenv("HOME", home)
	users := filepath.Join(home, ".config", "dragoman", config.FileName)
	if err := os.MkdirAll(filepath.Dir(users), 0o700); err != nil {
		t.Fatal(err)
	}
	serve := func(environ ...string) string {
		t.Helper()
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		config.AddFlags(fs)
		c, err := config.Load(fs, environ)
		if err != nil {
			t.Fatal(err)
		}
		return c.File
	}
	if got := serve(); got != "" {
		t.Errorf("without a file: got %q, want none", got)
	}
	for _, path := range []string{users, config.FileName} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := serve("XDG_CONFIG_HOME=relative"); got != path {
			t.Errorf("got the file %q, want %q", got, path)
		}
	}
	if got := serve("DRAGOMAN_CONFIG=" + users); got != users {
		t.Errorf("where one is named: got the file %q, want %q", got, users)
	}
	if got := serve("DRAGOMAN_CONFIG="); got != "" {
		t.Errorf("where none is named: got the file %q, want none", got)
	}
	if got, err := config.Load(pflag.NewFlagSet("", pflag.ContinueOnError), nil); err != nil || got.File != "" {
		t.Errorf("for what has no flag for it: got %q and %v, want no file", got.File, err)
	}
}
