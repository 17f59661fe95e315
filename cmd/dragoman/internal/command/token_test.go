package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/auth"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/credentials"
	"github.com/dragoman-hub/dragoman/core"
)

func TestANewTokenIsPrintedAloneAndItsHashIsAddedToTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	code, first, stderr := run(t, "token", "new", "--principal", "alice", "--kind", "person", "--file", path)
	if code != command.ExitDone || strings.Count(first, "\n") != 1 || !strings.Contains(stderr, "SIGHUP") {
		t.Fatalf("got %d, %q and %s, want the token alone and what to do", code, first, stderr)
	}
	code, second, stderr := run(t, "token", "new", "--principal", "ci", "--agents", "build-*", "--agents", "test", "--role", "builder", "--operator", "--expires", "30d", "--file", path)
	if code != command.ExitDone {
		t.Fatalf("got %d and %s, want a second token", code, stderr)
	}
	list, err := credentials.ReadTokens(path)
	if err != nil || len(list) != 2 {
		t.Fatalf("got %v and %v, want both tokens", list, err)
	}
	alice, ci := list[0], list[1]
	if alice.Hash != auth.HashOf(strings.TrimSpace(first)) || alice.Principal != "alice" || alice.Kind != core.KindPerson || alice.Operator || !alice.Expires.IsZero() {
		t.Errorf("got %+v, want the hash of %q for alice", alice, first)
	}
	if ci.Hash != auth.HashOf(strings.TrimSpace(second)) || !ci.Operator || ci.Roles[0] != "builder" || len(ci.Agents) != 2 || time.Until(ci.Expires).Round(time.Hour) != 30*24*time.Hour {
		t.Errorf("got %+v, want everything that was given", ci)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(text), strings.TrimSpace(first)) {
		t.Errorf("got %s and %v, want no token in the file", text, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v and %v, want the mode 0600", info.Mode(), err)
	}
}

func TestWithoutAFileTheEntryOfATokenIsPrintedBesideIt(t *testing.T) {
	code, out, stderr := run(t, "token", "new", "--principal", "alice", "--role", "ops")
	if code != command.ExitDone || strings.Count(out, "\n") != 1 || strings.Contains(stderr, strings.TrimSpace(out)) {
		t.Fatalf("got %d, %q and %s, want the token on standard output alone", code, out, stderr)
	}
	_, entry, _ := strings.Cut(stderr, "\n\n")
	entry, _, _ = strings.Cut(entry, "\n\n")
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(path, []byte("tokens:\n"+entry), 0o600); err != nil {
		t.Fatal(err)
	}
	if list, err := credentials.ReadTokens(path); err != nil || len(list) != 1 || list[0].Hash != auth.HashOf(strings.TrimSpace(out)) {
		t.Errorf("got %v and %v, want an entry that can be added", list, err)
	}
}

func TestATokenThatCannotBeMadeSaysWhatToChange(t *testing.T) {
	for args, want := range map[string]string{
		"":                             "Give --principal NAME",
		"--principal role:x":           "--principal: want a name",
		"--principal a --kind robot":   `--kind "robot": use person, agent or service`,
		"--principal a --expires soon": "write a time such as 30d",
		"--principal a --expires 2001-01-01T00:00:00Z": "that is in the past",
		"--principal a --agents hub":                   "--agents: want ids of agents",
		"--principal a --role ":                        "--role",
	} {
		code, out, stderr := run(t, append([]string{"token", "new"}, strings.Split(args, " ")...)...)
		if args == "" {
			code, out, stderr = run(t, "token", "new")
		}
		if code != command.ExitUsage || out != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: got %d, %q and %s, want %q and no token", args, code, out, stderr, want)
		}
	}
}
