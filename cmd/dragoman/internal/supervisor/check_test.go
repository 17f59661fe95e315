package supervisor_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	mcppack "github.com/dragoman-hub/dragoman/adapters/mcp/pack"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/supervisor"
)

func TestCheckFindsWhatWillFail(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, mode os.FileMode, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plain, open, secret, empty := file("plain", 0o600, "x"), file("open", 0o644, "x"), file("secret", 0o600, "x"), file("empty", 0o600, "")
	file("run", 0o700, "#!/bin/sh")
	t.Setenv("SET_HERE", "1")
	const must, may = false, true
	for name, tt := range map[string]struct {
		process config.Process
		remote  config.Remote
		want    []supervisor.Finding
	}{
		"what is there":             {config.Process{Command: []string{"./run"}, Dir: dir, Env: []string{"SET_HERE", "OTHER=1"}}, config.Remote{TokenFile: secret}, nil},
		"a program not in PATH":     {process: config.Process{Command: []string{"no-such-program"}}, want: []supervisor.Finding{{"command", "no-such-program is not found in PATH: install it, or write its whole path", must}}},
		"a program that is missing": {process: config.Process{Command: []string{dir + "/none"}}, want: []supervisor.Finding{{"command", dir + "/none does not exist: write its whole path, or one relative to cwd", must}}},
		"a file that is no program": {process: config.Process{Command: []string{plain}}, want: []supervisor.Finding{{"command", plain + " is not executable: run chmod +x on it, or name its interpreter first", must}}},
		"a missing directory":       {process: config.Process{Command: []string{"sh"}, Dir: dir + "/none"}, want: []supervisor.Finding{{"cwd", dir + "/none: no such file or directory; make the directory, or name another", must}}},
		"a file as directory":       {process: config.Process{Command: []string{"sh"}, Dir: plain}, want: []supervisor.Finding{{"cwd", plain + ": not a directory; make the directory, or name another", must}}},
		"a variable that is unset":  {process: config.Process{Command: []string{"sh"}, Env: []string{"A=1", "NOT_SET_HERE"}}, want: []supervisor.Finding{{"env[1]", "NOT_SET_HERE is not set here: export it first, or write NOT_SET_HERE=value", may}}},
		"a missing token":           {remote: config.Remote{TokenFile: dir + "/none"}, want: []supervisor.Finding{{"token_file", dir + "/none: no such file or directory; write the token into a file that only the hub may read", must}}},
		"an empty token":            {remote: config.Remote{TokenFile: empty}, want: []supervisor.Finding{{"token_file", empty + " is empty; write the token into a file that only the hub may read", must}}},
		"a token for everybody":     {remote: config.Remote{TokenFile: open}, want: []supervisor.Finding{{"token_file", "other users may read " + open + " (mode 0644): run chmod 600 on it", may}}},
	} {
		if diff := cmp.Diff(tt.want, supervisor.Check(tt.process, tt.remote)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestCheckKnowsHowEditorAgentsStart(t *testing.T) {
	sh := t.TempDir() + "/"
	for _, name := range []string{"gemini", "claude-agent-acp", "codex-acp", "qwen", "other"} {
		if err := os.WriteFile(sh+name, []byte("#!/bin/sh"), 0o700); err != nil { //nolint:gosec // it is a program
			t.Fatal(err)
		}
	}
	t.Setenv("GEMINI_CLI_TRUST_WORKSPACE", "true")
	off := false
	const (
		drops = "Gemini CLI leaves out the tools of the hub, without a word, in a folder that it does not trust: add GEMINI_CLI_TRUST_WORKSPACE=true, unless the folder is trusted"
		asks  = " starts in a mode in which it may change files without asking: add mode: "
	)
	for _, c := range []struct {
		agent config.Agent
		want  string
	}{
		{config.Agent{Process: config.Process{Command: []string{sh + "gemini", "--acp"}}}, drops},
		{config.Agent{Process: config.Process{Command: []string{"sh", "/x/node_modules/@google/gemini-cli/bundle/gemini.js", "--acp"}}}, drops},
		{config.Agent{Process: config.Process{Command: []string{sh + "gemini"}, Env: []string{"GEMINI_CLI_TRUST_WORKSPACE=false"}}}, drops},
		{config.Agent{Process: config.Process{Command: []string{sh + "gemini"}, Env: []string{"GEMINI_CLI_TRUST_WORKSPACE"}}}, ""},
		{config.Agent{Process: config.Process{Command: []string{sh + "gemini"}}, Tools: &off}, ""},
		{config.Agent{Process: config.Process{Command: []string{sh + "claude-agent-acp"}}}, "claude-agent-acp" + asks + "default, unless its own settings say otherwise"},
		{config.Agent{Process: config.Process{Command: []string{"sh", "/x/@agentclientprotocol/codex-acp/dist/index.js"}}}, "codex-acp" + asks + "read-only, unless its own settings say otherwise"},
		{config.Agent{Process: config.Process{Command: []string{"sh", "/x/@qwen-code/qwen-code/cli-entry.js", "--acp"}}}, "qwen" + asks + "default, unless its own settings say otherwise"},
		{config.Agent{Process: config.Process{Command: []string{sh + "codex-acp"}}, Mode: "agent"}, ""},
		{config.Agent{Process: config.Process{Command: []string{sh + "other"}}}, ""},
	} {
		c.agent.Dialect = config.SpeaksEditor
		var got string
		for _, f := range supervisor.CheckAgent(c.agent) {
			got += f.Text
			if !f.Warning {
				t.Errorf("%v: got the error %+v, want a warning", c.agent.Command, f)
			}
		}
		if got != c.want {
			t.Errorf("%v: got %q, want %q", c.agent.Command, got, c.want)
		}
	}
}

// The settings cannot import the limits of a pack, and have them too.
func TestTheSettingsAllowWhatAPackTakes(t *testing.T) {
	for member, want := range map[string]bool{
		fmt.Sprintf("result_bytes: %d", mcppack.MaxResultBytes): true, fmt.Sprintf("result_bytes: %d", mcppack.MaxResultBytes+1): false,
		fmt.Sprintf("timeout: %s", mcppack.DefaultMaxTime): true, fmt.Sprintf("timeout: %s", mcppack.DefaultMaxTime+1): false,
	} {
		_, err := config.Load(pflag.NewFlagSet("", pflag.ContinueOnError), []string{"DRAGOMAN_PACKS=[{name: a, command: [a], " + member + "}]"})
		if got := err == nil; got != want {
			t.Errorf("%s: got %v, want it allowed: %t", member, err, want)
		}
	}
}
