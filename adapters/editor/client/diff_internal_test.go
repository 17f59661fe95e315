package client

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"os"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
)

func TestADiffHasItsChangeAndThreeLinesAround(t *testing.T) {
	old, after := "1\n2\n3\n4\n5\n6\n7\n8\n", "1\n2\n3\n4\nfive\n6\n7\n8"
	for _, c := range []struct {
		old  *string
		new  string
		want string
	}{
		{&old, after, "--- a\n+++ a\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n-6\n-7\n-8\n+five\n+6\n+7\n+8\n\\ No newline at end of file\n"},
		{nil, "x\n", "--- /dev/null\n+++ a\n@@ -0,0 +1,1 @@\n+x\n"},
		{&old, old, "--- a\n+++ a\n"},
		{&old, "", "--- a\n+++ a\n@@ -1,8 +0,0 @@\n-1\n-2\n-3\n-4\n-5\n-6\n-7\n-8\n"},
	} {
		if got := string(unified(wire.ToolContent{Path: "a", OldText: c.old, NewText: &c.new})); got != c.want {
			t.Errorf("got\n%s\nwant\n%s", got, c.want)
		}
	}
}

// What a diff says makes the new text out of the old one, by another program.
func TestADiffAppliesToTheOldText(t *testing.T) {
	patch, err := exec.LookPath("patch")
	if err != nil {
		t.Skip("NOT RUN: there is no program patch")
	}
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a\n", "b\n", "\n", "c\n"}), 0, 12).Draw(t, "lines"), "") + rapid.SampledFrom([]string{"", "end"}).Draw(t, "end")
		})
		before, after := text.Draw(t, "before"), text.Draw(t, "after")
		if before == after {
			return
		}
		file, diff := filepath.Join(dir, "f"), filepath.Join(dir, "d")
		_ = os.Remove(file)
		for name, data := range map[string][]byte{file: []byte(before), diff: unified(wire.ToolContent{Path: "f", OldText: &before, NewText: &after})} {
			if err := os.WriteFile(name, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command(patch, "--posix", "-s", "f", "d")
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		got, _ := os.ReadFile(file)
		if err != nil || string(got) != after {
			t.Fatalf("patch made %q of %q, want %q: %v %s", got, before, after, err, out)
		}
	})
}
