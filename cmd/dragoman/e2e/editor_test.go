package e2e

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

// The settings in the documentation are what the editors read, and name the command as it is.
func TestTheDocumentedSettingsOfEditorsStartTheCommand(t *testing.T) {
	page, err := os.ReadFile("../../../docs/dialects/editor.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "## The hub as an agent of your editor")
	if !found {
		t.Fatal("the page has no section about the hub as an agent")
	}
	blocks := regexp.MustCompile("(?s)```(json|lua|elisp)\n(.*?)```").FindAllStringSubmatch(section, -1)
	if len(blocks) != 5 {
		t.Fatalf("got %d blocks of settings, want those of Zed, JetBrains, Emacs and two of Neovim", len(blocks))
	}
	h := newTestHub(t, nil)
	h.startAgent(t, coven.Name, "coder", 1)
	for _, block := range blocks {
		var words []string
		switch block[1] {
		case "elisp":
			for _, word := range regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(block[2], -1) {
				words = append(words, word[1])
			}
		case "json":
			var settings struct {
				Servers map[string]struct {
					Type, Command string
					Args          []string
					Env           map[string]string
				} `json:"agent_servers"`
			}
			d := json.NewDecoder(strings.NewReader(block[2]))
			d.DisallowUnknownFields()
			if err := d.Decode(&settings); err != nil {
				t.Fatalf("%v:\n%s", err, block[2])
			}
			for _, s := range settings.Servers {
				words = append([]string{s.Command}, s.Args...)
			}
		default:
			words = luaCommand(t, block[2])
		}
		if want := []string{"dragoman", "editor", "--agent", "coder"}; !slices.Equal(words, want) {
			t.Errorf("got the command %q, want %q", words, want)
			continue
		}
		greeting := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}` + "\n"
		code, out, stderr := runWith(t.Context(), greeting, append(words[1:], "--hub", h.url())...)
		if code != command.ExitDone || !strings.HasPrefix(out, `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,`) || stderr != "" {
			t.Errorf("got %d, %q and %q, want initialize answered", code, out, stderr)
		}
	}
}

// luaCommand returns the words of the command in settings of Lua, whose brackets must match.
func luaCommand(t *testing.T, text string) (words []string) {
	t.Helper()
	var open []rune
	for _, r := range regexp.MustCompile(`"[^"]*"`).ReplaceAllString(text, "") {
		switch i := strings.IndexRune("({[)}]", r); {
		case i >= 3 && (len(open) == 0 || open[len(open)-1] != rune("({["[i-3])):
			t.Fatalf("%c closes nothing:\n%s", r, text)
		case i >= 3:
			open = open[:len(open)-1]
		case i >= 0:
			open = append(open, r)
		}
	}
	if len(open) > 0 {
		t.Fatalf("%c is not closed:\n%s", open[0], text)
	}
	for _, member := range []string{`command = "([^"]*)"`, `args = \{([^}]*)\}`, `default = \{([^}]*)\}`} {
		if m := regexp.MustCompile(member).FindStringSubmatch(text); m != nil {
			for word := range strings.SplitSeq(m[1], ",") {
				words = append(words, strings.Trim(word, ` "`))
			}
		}
	}
	return words
}

func TestTheEditorCommandRefusesWhatItCannotDo(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "--agent is missing: name the agent that answers"},
		{[]string{"--agent", "capability:"}, "--agent: address"},
		{[]string{"--agent", "x", "y"}, "y"},
		{[]string{"--agent", "x", "--hub", "nonsense"}, `--hub "nonsense": write it as http://host:port`},
	} {
		code, out, stderr := run(t, append([]string{"editor"}, tt.args...)...)
		if code != command.ExitUsage || out != "" || !strings.Contains(stderr, tt.want) {
			t.Errorf("%q: got %d, %q and %q, want %d and %q", tt.args, code, out, stderr, command.ExitUsage, tt.want)
		}
	}
}

// editorChild is the command in a process of its own.
type editorChild struct {
	t     *testing.T
	in    io.WriteCloser
	lines chan string
	end   func() error
}

func startEditor(t *testing.T, args ...string) *editorChild {
	t.Helper()
	child := startChild(t, nil, append([]string{"editor", "--agent", "coder"}, args...)...)
	return &editorChild{t, child.in, child.lines, child.cmd.Wait}
}

// ask sends a request and returns the answer to it.
func (e *editorChild) ask(line, id string) string {
	e.t.Helper()
	if _, err := io.WriteString(e.in, line+"\n"); err != nil {
		e.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(e.t.Context(), watchdog)
	defer cancel()
	for {
		select {
		case got := <-e.lines:
			if strings.HasPrefix(got, `{"jsonrpc":"2.0","id":`+id+",") {
				return got
			}
		case <-ctx.Done():
			e.t.Fatalf("%s: got no answer", line)
		}
	}
}

// A hub that is killed and started again at its address: the session goes on.
func TestTheEditorCommandOutlivesTheHub(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	hub := startHub(t, "--data-dir", data)
	e := startEditor(t, "--hub", "http://"+hub.http)
	e.ask(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`, "0")
	began := e.ask(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/a","mcpServers":[]}}`, "1")
	session := regexp.MustCompile(`editor-[-0-9a-f]+`).FindString(began)
	if err := hub.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = hub.cmd.Wait() // it was killed
	prompt := `"method":"session/prompt","params":{"sessionId":"` + session + `","prompt":[{"type":"text","text":"hello"}]}}`
	if got := e.ask(`{"jsonrpc":"2.0","id":2,`+prompt, "2"); !strings.Contains(got, "dragoman serve") && !strings.Contains(got, "was lost") {
		t.Errorf("got %s, want an error that says what to do", got)
	}
	startHub(t, "--data-dir", data, "--http-addr", hub.http)
	for id := 3; ; id++ { // until the command has connected again
		n := string(plainJSON(id))
		got := e.ask(`{"jsonrpc":"2.0","id":`+n+`,`+prompt, n)
		if strings.Contains(got, `no agent \"coder\" is here`) {
			break // the hub knows the session
		}
		if !strings.Contains(got, "dragoman serve") && !strings.Contains(got, "was lost") {
			t.Fatalf("got %s, want the hub to know the session", got)
		}
	}
	e.in.Close()
	for range e.lines {
	}
	if err := e.end(); err != nil {
		t.Errorf("got %v at the end of stdin, want no error", err)
	}
}

func TestAnEditorNeedsATokenWhereOthersDo(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, func(c *config.Config) { c.Auth.Tokens = tokensFile(t, "ada") })
	greeting := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}` + "\n"
	for token, want := range map[string]string{"": "asks for a token", "wrong": "does not know the token", "ada": `"protocolVersion":1`} {
		e := startEditor(t, "--hub", h.url(), "--token", token)
		if got := e.ask(strings.TrimSpace(greeting), "0"); !strings.Contains(got, want) {
			t.Errorf("token %q: got %s, want %s", token, got, want)
		}
		e.in.Close()
		for range e.lines {
		}
		_ = e.end() // its answer is what counts
	}
}
