package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestTheExampleOfAClusterDoesWhatItSays runs the two commands of the example: answers go on though
// hubs are killed, and nothing is left in the end.
func TestTheExampleOfAClusterDoesWhatItSays(t *testing.T) {
	t.Parallel()
	needs(t, "sh", "od", "tr", "awk")
	const example = "../../../docs/examples/cluster/"
	dir, bin := t.TempDir(), t.TempDir()
	if err := os.Symlink(program(t).Path, filepath.Join(bin, "dragoman")); err != nil {
		t.Fatal(err)
	}
	port := fmt.Sprint(fixedPorts(t, 6))
	script := func(name string) (cmd *exec.Cmd, out *bytes.Buffer) {
		cmd, out = exec.CommandContext(t.Context(), example+name), &bytes.Buffer{}
		cmd.Env = program(t).Env
		cmd.Env = append(cmd.Env, "PATH="+bin+":"+os.Getenv("PATH"), "PORT="+port, "TMPDIR="+dir)
		cmd.Stdout, cmd.Stderr = out, out
		return cmd, out
	}
	hubs, log := script("hubs.sh")
	if err := hubs.Start(); err != nil {
		t.Fatal(err)
	}
	conversation, out := script("conversation.sh")
	err := conversation.Run()
	if err != nil {
		logs, _ := filepath.Glob(filepath.Join(dir, "*", "*.log"))
		for _, name := range logs {
			of, _ := os.ReadFile(name)
			t.Logf("%s:\n%s", filepath.Base(name), of)
		}
	}
	_ = hubs.Process.Signal(syscall.SIGTERM) // it may have ended
	if ended := hubs.Wait(); err != nil || ended != nil {
		t.Fatalf("the conversation: got %v and\n%s\nthe hubs: %v and\n%s", err, out, ended, log)
	}
	rest := out.String()
	for _, want := range []string{
		"one two three four five six", // asked at a, answered at b
		"Hub c is dead.", "six",       // read at a
		"it goes on at hub", "says yes.", // by the other thinker
		"done",
	} {
		before, after, found := strings.Cut(rest, want)
		if rest = after; !found {
			t.Fatalf("got\n%swant %q after\n%s", out, want, before)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "dragoman-cluster-"+port)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what the hubs had stored: got %v, want that it is removed", err)
	}
}
