//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// atHome returns the variables of a user with a home of their own.
func atHome(t *testing.T) []string {
	t.Helper()
	home := t.TempDir()
	return []string{"HOME=" + home, "XDG_CONFIG_HOME=" + filepath.Join(home, "config"), "XDG_CACHE_HOME=" + filepath.Join(home, "cache")}
}

// dragoman runs the program in a directory, as a user, and returns what it printed. It has to succeed.
func dragoman(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	cmd := program(t, args...)
	cmd.Dir, cmd.Env = dir, append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("dragoman %q: got %v and %s, want it done", args, err, out)
	}
	return string(out)
}

// The hub was started without a file. It reads the one that is written for it, and the agent works where it was added.
func TestAnAgentThatIsAddedIsTakenByTheHubThatRuns(t *testing.T) {
	t.Parallel()
	user, there, here := atHome(t), t.TempDir(), t.TempDir()
	hub := startHubOf(t, there, user)
	if out, want := dragoman(t, here, user, "add", "where", "--", "pwd"), "where is ready; next: 'dragoman ask where hello --hub http://"+hub.http+"'"; !strings.Contains(out, want) {
		t.Errorf("got %s, want %s in it", out, want)
	}
	if line := hub.waitLog(t, "will run"); line["agent"] != "where" || line["command"] != "pwd" {
		t.Errorf("got %v, want the command told before it runs", line)
	}
	hub.waitLog(t, "agent is ready")
	out := dragoman(t, here, user, "ask", "where", "hello", "--hub", "http://"+hub.http)
	if dir, err := filepath.EvalSymlinks(here); err != nil || strings.TrimSpace(out) != dir {
		t.Errorf("got it working in %s (%v), want %s", out, err, dir)
	}
	if _, err := os.Stat(filepath.Join(there, "dragoman.yaml")); err != nil {
		t.Errorf("got %v, want the file where the hub was started", err)
	}
	add := program(t, "add", "where", "--", "pwd")
	add.Dir, add.Env = here, append(add.Env, user...)
	if out, err := add.CombinedOutput(); err == nil || !strings.Contains(string(out), "where is there already") {
		t.Errorf("again: got %v and %s, want it refused", err, out)
	}
}

// The program is in the PATH of whoever adds it, and not in that of the hub.
func TestAnAgentThatTheHubCannotStartIsSaidWhereItIsAdded(t *testing.T) {
	t.Parallel()
	user, there, bin := atHome(t), t.TempDir(), t.TempDir()
	hub := startHubOf(t, there, user)
	if err := os.WriteFile(filepath.Join(bin, "mine"), []byte("#!/bin/sh\ncat\n"), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	add := program(t, "add", "mine", "--", "mine")
	add.Dir, add.Env = there, append(add.Env, append(user, "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))...)
	out, err := add.CombinedOutput()
	if want := "dragoman: mine could not be started: "; err == nil || !strings.Contains(string(out), want) || !strings.Contains(string(out), "mine is in dragoman.yaml") {
		t.Errorf("got %v and %s, want %q after what was written", err, out, want)
	}
	hub.waitLog(t, "will run")
}

// What the hub does not say is said to be unknown, with how to look.
func TestAHubThatCannotBeAskedIsToldAllTheSame(t *testing.T) {
	t.Parallel()
	user, there := atHome(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(there, "dragoman.yaml"), []byte("auth: {tokens: "+tokensFile(t, "anna")+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	hub := startHubOf(t, there, user)
	out := dragoman(t, there, user, "add", "shout", "--", "tr", "a-z", "A-Z")
	if want := "'dragoman agents shout --hub http://" + hub.http + "' says that"; !strings.Contains(out, "cannot be asked how it goes") || !strings.Contains(out, want) {
		t.Errorf("got %s, want %s in it", out, want)
	}
	hub.waitLog(t, "agent is ready")
}

func TestAHubTellsItsSettingsFileAndWhatItWillRun(t *testing.T) {
	t.Parallel()
	user, dir := atHome(t), t.TempDir()
	dragoman(t, dir, user, "add", "shout", "--", "tr", "a-z", "A-Z")
	hub := startLoggingHub(t, dir, user)
	if got := hub.waitLog(t, "the settings are those of a file")["file"]; got == "" || filepath.Base(got.(string)) != "dragoman.yaml" {
		t.Errorf("got the file %v, want that of the directory", got)
	}
	if line := hub.waitLog(t, "will run"); line["command"] != "tr a-z A-Z" {
		t.Errorf("got %v, want the command", line)
	}
	hub.http = hub.waitLog(t, "the hub is ready")["http"].(string)
	hub.waitLog(t, "the console is at http://"+hub.http+"/; next, in another terminal: dragoman ask shout hello --hub http://"+hub.http)
}

func TestAHubThatWasKilledIsNoHubThatRuns(t *testing.T) {
	t.Parallel()
	user, there, here := atHome(t), t.TempDir(), t.TempDir()
	hub := startHubOf(t, there, user)
	if err := hub.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = hub.cmd.Wait()
	if out := dragoman(t, here, user, "add", "shout", "--", "tr", "a-z", "A-Z"); !strings.Contains(out, "shout is in dragoman.yaml") {
		t.Errorf("got %s, want the file of this directory", out)
	}
}

// Of two hubs nobody knows which one is meant.
func TestOfSeveralHubsOneIsNamedByItsFile(t *testing.T) {
	t.Parallel()
	user, dirs := atHome(t), []string{t.TempDir(), t.TempDir()}
	var hubs []*hubProcess
	for _, dir := range dirs {
		hubs = append(hubs, startHubOf(t, dir, user))
	}
	add := program(t, "add", "shout", "--", "tr", "a-z", "A-Z")
	add.Dir, add.Env = dirs[0], append(add.Env, user...)
	if out, err := add.CombinedOutput(); err == nil || !strings.Contains(string(out), "several hubs of yours run here: name the file of one with --config") {
		t.Errorf("got %v and %s, want it refused", err, out)
	}
	dragoman(t, dirs[0], user, "add", "--config", filepath.Join(dirs[1], "dragoman.yaml"), "shout", "--", "tr", "a-z", "A-Z")
	hubs[1].waitLog(t, "agent is ready")
}
