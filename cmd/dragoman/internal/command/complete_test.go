package command_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

// completions returns what a shell is offered, with descriptions, and how it is to take that.
func completions(t *testing.T, args ...string) (words []string, how string) {
	t.Helper()
	code, out, _ := run(t, append([]string{cobra.ShellCompRequestCmd}, args...)...)
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if code != command.ExitDone || len(lines) == 0 {
		t.Fatalf("%q: got %d and %q, want completions", args, code, out)
	}
	last := len(lines) - 1
	return lines[:last], lines[last]
}

// The directives of cobra that shells get.
const (
	byDefault = ":0"
	noFile    = ":4"
	yamlFiles = ":8"
	dirs      = ":16"
	inOrder   = ":36" // and no file
)

func TestShellsCompleteWhatIsOnTheHub(t *testing.T) {
	at := fakeHub(t, map[string]string{
		"GET /v1/agents": `{"agents":[{"id":"bell","name":"Bell","dialect":"coven","capabilities":["ring"],"domains":["house.door"],"load":{"state":"idle"},"child":{"state":"ready"}},{"id":"bob","dialect":"acp","load":{"state":"idle"}}]}`,
		"GET /v1/packs":  `{"packs":[{"id":"files","dialect":"mcp","tools":["files.read"],"child":{"state":"restarting"}},{"id":"other","dialect":"coven"}]}`,
		"GET /v1/tasks": `{"tasks":[{"id":"t2","state":"running","thread":"th","from":{"id":"ada","dialect":"rest"},"content":"what is\nup?"},
			{"id":"t1","state":"done","thread":"th","from":{"id":"ada"},"content":"before"},{"id":"t0","state":"queued","thread":"old","from":{"id":"eve"},"data":{"n":1}}]}`,
		"GET /v1/approvals":  `{"approvals":[{"task":"t2","id":"c1","agent":"bell","name":"rm","input":"-rf /"},{"task":"t1","id":"c9","agent":"bell","name":"ls","input":"."}]}`,
		"GET /v1/questions":  `{"questions":[{"id":"q1","agent":"bell","question":"When?","options":[{"label":"Friday","description":"soon"},{"label":"never"}],"multi_select":true}]}`,
		"POST /mcp":          `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"agents_list","description":"List.","inputSchema":{}},{"name":"files.read","inputSchema":{}}]}}`,
		"GET /v1/hub":        `{"cluster":{"hubs":[{"name":"a","state":"up","address":"http://a:8080"},{"name":"b","state":"gone"}]}}`,
		"GET /v1/principals": `{"principals":[{"principal":"agent-1","status":"pending","fingerprint":"SHA256:x"}]}`,
	})
	agents := []string{"bell\tBell, coven, idle", "bob\tacp, idle"}
	addresses := slices.Concat(agents, []string{"capability:ring\tsuch as bell", "domain:house.door\tsuch as bell"})
	tasks := []string{"t2\trunning: what is up?", "t1\tdone: before", "t0\tqueued: {\"n\":1}"}
	running := []string{tasks[0], tasks[2]}
	threads := []string{"th\twhat is up?", "old\t{\"n\":1}"}
	for args, want := range map[string][]string{
		"ask":                addresses,
		"ask b":              agents,
		"ask capability:":    addresses[2:3],
		"delegate":           addresses,
		"notify":             addresses,
		"editor --agent":     addresses,
		"agents":             agents,
		"packs":              {"files\tmcp, 1 tools", "other\tcoven, 0 tools"},
		"call":               {"agents_list\tList.", "files.read"},
		"agents restart":     {"bell\tagent, ready", "files\tpack, restarting"},
		"config set-agent":   agents,
		"tasks --agent":      agents,
		"tasks":              tasks,
		"tasks --before":     tasks,
		"tasks --cause":      tasks,
		"tasks --from":       {"ada\trest", "eve"},
		"tasks --thread":     threads,
		"ask --thread":       threads,
		"delegate --thread":  threads,
		"tail":               tasks,
		"tail t1":            tasks[1:2],
		"frames":             tasks,
		"cancel":             running,
		"inject":             running,
		"approve":            {"t2\trm of bell: -rf /", "t1\tls of bell: ."},
		"approve t2 c":       {"c1\trm: -rf /"},
		"deny t1 c":          {"c9\tls: ."},
		"answer":             {"q1\tbell: When?"},
		"answer q1 F":        {"Friday\tsoon"},
		"answer q1 Friday n": {"never"},
		"hubs forget":        {"a\tup http://a:8080", "b\tgone"},
		"audit --of":         {"a\tup http://a:8080", "b\tgone"},
		"principals approve": {"agent-1\tpending, SHA256:x"},
		"principals revoke":  {"agent-1\tpending, SHA256:x"},
		"audit --principal":  {"agent-1\tpending, SHA256:x"},
	} {
		words := strings.Fields(args)
		given := ""
		if last := words[len(words)-1]; len(words) > 1 && (len(last) == 1 || strings.HasSuffix(last, ":") || args == "tail t1") {
			words, given = words[:len(words)-1], last
		}
		flag := len(words)
		if strings.HasPrefix(words[len(words)-1], "--") {
			flag-- // whose value comes next
		}
		line := append(append(append([]string{}, words[:flag]...), at), words[flag:]...)
		got, how := completions(t, append(line, given)...)
		if diff := cmp.Diff(want, got); diff != "" || how != inOrder {
			t.Errorf("dragoman %s: got the directive %s and (-want +got):\n%s", args, how, diff)
		}
	}
	for _, args := range []string{"ask bell", "agents bell", "tasks t1", "cancel t1", "approve t2 c1", "hubs forget a", "packs files", "agent --name"} {
		if got, how := completions(t, append(strings.Fields(args), at, "")...); args != "agent --name" && (len(got) > 0 || how == byDefault) {
			t.Errorf("dragoman %s: got %q and %s, want nothing more", args, got, how)
		}
	}
}

func TestShellsCompleteChoices(t *testing.T) {
	for args, want := range map[string]string{
		"agent --dialect": "acp coven native parallax", "agent --speaks": "text editor pi-rpc native", "stdio --dialect": "pi acp native", "stdio --snapshots": "all none",
		"tail --color": "auto always never", "usage --by": "agent thread requester day task", "notify --importance": "low medium high", "inject --priority": "immediate normal deferred",
		"tasks --state": "queued running done failed cancelled", "agents --output": "wide json", "token new --kind": "person agent service",
		"serve --log-level": "debug info warn error", "check --log-format": "auto human json", "serve --stdio=": "true false",
	} {
		words := append(strings.Fields(args), "")
		if strings.HasSuffix(args, "=") {
			words = words[:len(words)-1]
		}
		if got, how := completions(t, words...); strings.Join(got, " ") != want || how != noFile {
			t.Errorf("dragoman %s: got %q and %s, want %s", args, got, how, want)
		}
	}
	if got, _ := completions(t, "check", "--envelope", "que"); !strings.HasPrefix(strings.Join(got, " "), "ping pong query") {
		t.Errorf("envelopes: got %q, want their kinds", got)
	}
}

// A flag for a file completes files, another one none, and each has been thought of.
func TestShellsCompleteFilesWhereTheyAreWanted(t *testing.T) {
	for args, want := range map[string]string{
		"ask --file": byDefault, "agents --ca": byDefault, "agents --cert": byDefault, "agents --key": byDefault, "token new --file": byDefault, "agent --signing-secret": byDefault,
		"serve --pi-socket": byDefault, "serve --ready-file": byDefault, "agent --name x --": byDefault,
		"serve --config": yamlFiles, "check --config": yamlFiles, "serve --data-dir": dirs,
		"agent --name": noFile, "ask --timeout": noFile, "serve --http-addr": noFile, "agents --hub": noFile, "agents --token": noFile, "serve": noFile, "token new": noFile,
	} {
		if _, how := completions(t, append(strings.Fields(args), "")...); how != want {
			t.Errorf("dragoman %s: got %s, want %s", args, how, want)
		}
	}
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if _, has := c.GetFlagCompletionFunc(f.Name); !has {
				t.Errorf("%s --%s: got no completion, want one", c.CommandPath(), f.Name)
			}
		})
		for _, below := range c.Commands() {
			visit(below)
		}
	}
	visit(command.NewRoot(command.Streams{}))
}

func TestShellsCompleteAFileBehindAnAt(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Chdir(dir)
	for _, name := range []string{"question.md", "quotes.txt", ".hidden"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "sub", "more"), 0o700); err != nil {
		t.Fatal(err)
	}
	const noSpace = ":6" // and no file
	for given, want := range map[string]string{
		"@": "@question.md @quotes.txt @sub/ " + noSpace, "@qu": "@question.md @quotes.txt " + noFile, "@s": "@sub/ " + noSpace, "@sub/": "@sub/more/ " + noSpace,
		"@~/que": "@~/question.md " + noFile, "@.h": "@.hidden " + noFile, "@none/": noFile, "q": noFile, "": noFile,
	} {
		got, how := completions(t, "ask", "bob", given)
		if text := strings.Join(append(got, how), " "); text != want {
			t.Errorf("%q: got %s, want %s", given, text, want)
		}
	}
	if _, how := completions(t, "ask", "bob", "@", "qu"); how != byDefault {
		t.Errorf("behind an @ that is a word of its own, as in bash: got %s, want files", how)
	}
	if got, _ := completions(t, "delegate", "--background", "@que"); strings.Join(got, " ") != "@question.md" {
		t.Errorf("a flag: got %q, want the file", got)
	}
}

// Somebody who types waits for a completion, and is told nothing if there is none.
func TestACompletionIsQuickAndSilentWithoutAHub(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // it answers nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	given := make(chan string, 1) // up, by a command, with what it says
	go func() {
		var said bytes.Buffer
		code := command.Run(ctx, []string{"agents", "--hub", "http://" + silent.Addr().String()}, command.Streams{In: http.NoBody, Out: nopCloser{io.Discard}, Err: &said})
		given <- fmt.Sprintf("%d, %s", code, &said)
		silent.Close()
	}()
	asked, err := silent.Accept()
	if err != nil {
		t.Fatalf("a command: got %s (%v), want it to ask the hub", <-given, err)
	}
	defer asked.Close()
	t.Setenv("DRAGOMAN_NONSENSE", "1") // which a command would refuse
	for i, at := range []string{"http://" + silent.Addr().String(), "http://127.0.0.1:1", "nonsense", "http://127.0.0.1:1,http://127.0.0.1:2"} {
		code, out, stderr := run(t, cobra.ShellCompRequestCmd, "ask", "--hub", at, "")
		if code != command.ExitDone || out != inOrder+"\n" || strings.Contains(stderr, "dragoman:") {
			t.Errorf("%s: got %d, %q and %q, want nothing", at, code, out, stderr)
		}
		if i > 0 {
			continue
		}
		select {
		case <-given:
			t.Errorf("%s: got it after a command had given up that hub, want it long before", at)
		default:
		}
		stop()
	}
	<-given
}

// The marks of placeholders are for the help alone.
func TestShellsShowNoMarksBesideFlags(t *testing.T) {
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		for _, below := range c.Commands() {
			check(below)
		}
		path := strings.Fields(c.CommandPath())[1:]
		words, _ := completions(t, append(path, "--")...)
		for _, w := range words {
			if strings.Contains(w, "`") {
				t.Errorf("dragoman %s: got %q, want it without marks", strings.Join(path, " "), w)
			}
		}
	}
	check(command.NewRoot(command.Streams{}))
	if words, _ := completions(t, "ask", "--thr"); !slices.Equal(words, []string{"--thread\tid of the conversation to continue"}) {
		t.Errorf("got %q, want the flag with its description", words)
	}
}
