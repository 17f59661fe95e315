package e2e

import (
	"flag"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

var firstRun = flag.Bool("first.run", false, "record a first run, from a clone with empty caches")

// A new user has an answer of an agent that people have after five commands. It says how long that takes.
func TestAFirstRunTakesFiveCommands(t *testing.T) {
	if !*firstRun {
		t.Skip("-first.run is not given: make first-run")
	}
	needs(t, "git", "make", "node", "npm")
	goenv, err := exec.Command("go", "env", "GOENV").Output() // below another HOME it is lost
	if err != nil {
		t.Fatal(err)
	}
	env, keys, _ := publishedAgents["gemini"].prepare(t, knownAgent(t, "gemini"), t.TempDir())
	cmd := exec.CommandContext(t.Context(), "bash", "../../../.ci/first-run")
	cmd.Env = append(append(append(os.Environ(), "GOENV="+strings.TrimSpace(string(goenv))), env...), keys...)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !strings.Contains(string(out), "HELLO, world!") {
		t.Fatalf("got %v, want the answer", err)
	}
	if typed := regexp.MustCompile(`\b[1-5] commands\n`); !typed.Match(out) {
		t.Errorf("got another number of commands, want at most 5")
	}
}
