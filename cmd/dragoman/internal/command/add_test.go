package command_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

// inNewPlace makes a new directory the working one, of a user with nothing, and returns its path.
func inNewPlace(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "LocalAppData"} {
		t.Setenv(name, t.TempDir())
	}
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "DRAGOMAN_CONFIG"} {
		t.Setenv(name, "")
		os.Unsetenv(name)
	}
	return dir
}

// installed puts programs that do nothing into the PATH, in place of all others.
func installed(t *testing.T, programs ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range programs {
		if runtime.GOOS == "windows" {
			name += ".exe"
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	return dir
}

// add runs dragoman add, which has to succeed, and returns the settings file of the directory.
func add(t *testing.T, args ...string) (file string) {
	t.Helper()
	if code, out, stderr := run(t, append([]string{"add"}, args...)...); code != command.ExitDone {
		t.Fatalf("add %q: got %d, %s and %s, want it done", args, code, out, stderr)
	}
	b, err := os.ReadFile("dragoman.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestAKnownAgentIsAddedWithTheKeysThatAreSet(t *testing.T) {
	inNewPlace(t)
	installed(t, "claude-agent-acp")
	t.Setenv("ANTHROPIC_API_KEY", "secret")
	const want = "agents:\n  - {name: claude, dialect: editor, command: [claude-agent-acp], env: [ANTHROPIC_API_KEY], capabilities: [code], mode: default}\n"
	if got := add(t, "claude"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAnyCommandOrAddressIsAdded(t *testing.T) {
	inNewPlace(t)
	installed(t, "tr", "server")
	add(t, "shout", "--", "tr", "a-z", "A-Z")
	add(t, "far", "--url", "https://example.com/a")
	add(t, "tools", "--speaks", "mcp", "--env", "A=1", "--", "server", "-x")
	const want = `agents:
  - {name: shout, dialect: text, command: [tr, a-z, A-Z]}
  - {name: far, dialect: a2a, url: 'https://example.com/a'}
packs:
  - {name: tools, command: [server, -x], env: [A=1]}
  - {name: web, url: 'https://example.com/mcp'}
`
	if got := add(t, "web", "--speaks", "mcp", "--url", "https://example.com/mcp"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWhatCannotBeAddedLeavesTheFileAsItIs(t *testing.T) {
	dir := inNewPlace(t)
	installed(t, "tr", "pi")
	for _, c := range []struct {
		file string
		args []string
		want string
	}{
		{"", []string{"claude"}, "Claude Code is not here: claude-agent-acp is not found in PATH. Install it with 'npm install --global @agentclientprotocol/claude-agent-acp@"},
		{"", []string{"goose"}, "Goose is not here: goose is not found in PATH. Install it as https://"},
		{"", []string{"clade"}, `unknown agent "clade": did you mean claude? For another one write 'dragoman add clade -- COMMAND'`},
		{"", []string{"shout", "tr", "a-z"}, `unexpected argument "tr": for a command write 'dragoman add shout -- tr a-z'`},
		{"", []string{"shout", "--", "none"}, "none is not found in PATH: install it, or write its whole path"},
		{"", []string{"shout", "--speaks", "acp", "--", "tr"}, "--speaks acp: the Agent Client Protocol of editors is called editor here: write --speaks editor"},
		{"", []string{"shout", "--speaks", "a2a", "--", "tr"}, `--speaks "a2a": use text, editor, pi-rpc, native or mcp`},
		{"", []string{"far", "--url", "example.com"}, "url: want an http or https address"},
		{"", []string{"far", "--url", "http://x", "--", "tr"}, "--url is in place of a command"},
		{"", []string{"a", "--config", filepath.Join("none", "x.yaml"), "--", "tr"}, filepath.Join("none", "x.yaml") + ": no such file or directory"},
		{"", []string{"--", "tr"}, "NAME is missing before --"},
		{"", []string{"--url", "http://x"}, "--url has no effect without a NAME"},
		{"agents:\n  - {name: pi, command: [tr]}\n", []string{"pi"}, filepath.Join(dir, "dragoman.yaml") + ":2: agents[0]: pi is there already"},
		{"agents:\n  - [a\n", []string{"pi"}, "dragoman.yaml:2: a list is not closed"},
		{"agents: null\n", []string{"pi"}, "cannot be extended as it is written: write this into it, below agents\n  - {name: pi, dialect: pi-rpc,"},
		{"limits: {hops: 0}\n", []string{"pi"}, "dragoman.yaml:1: limits.hops: want a whole number"},
	} {
		if c.file != "" {
			configFile(t, dir, c.file)
		}
		code, out, stderr := run(t, append([]string{"add"}, c.args...)...)
		if code == command.ExitDone || out != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: got %d, %q and %q, want %q", c.args, code, out, stderr, c.want)
		}
		if got, _ := os.ReadFile("dragoman.yaml"); string(got) != c.file {
			t.Errorf("%q: got the file %q, want %q", c.args, got, c.file)
		}
	}
}

func TestAFileThatIsWrittenKeepsItsModeAndItsPlace(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes")
	}
	inNewPlace(t)
	installed(t, "tr")
	target := configFile(t, t.TempDir(), "# mine\n")
	if err := os.Chmod(target, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, "dragoman.yaml"); err != nil {
		t.Fatal(err)
	}
	add(t, "a", "--", "tr")
	info, err := os.Stat(target)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("got %v (%v), want the mode 0640", info.Mode(), err)
	}
	if link, err := os.Lstat("dragoman.yaml"); err != nil || link.Mode()&os.ModeSymlink == 0 {
		t.Errorf("got %v (%v), want the link as it was", link.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(target), ".*")); len(left) > 0 {
		t.Errorf("got %q beside the file, want nothing", left)
	}
}

func TestAddAloneListsWhatThisMachineHas(t *testing.T) {
	dir := inNewPlace(t)
	programs := installed(t, "pi", "gemini", "tr")
	configFile(t, dir, "agents: [{name: gemini, command: [tr]}]")
	code, out, stderr := run(t, "add")
	got := strings.Join(fields(out), "\n")
	if code != command.ExitDone {
		t.Fatalf("got %d and %s", code, stderr)
	}
	for _, want := range []string{
		"claude Claude Code - npm install --global @agentclientprotocol/claude-agent-acp@",
		"gemini Gemini CLI " + filepath.Join(programs, "gemini") + " dragoman ask gemini hello",
		"pi pi " + filepath.Join(programs, "pi") + " dragoman add pi",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant a line with %s", got, want)
		}
	}
	if strings.Contains(got, "goose") {
		t.Errorf("got\n%s\nwant no Goose where it is not installed", got)
	}
}
