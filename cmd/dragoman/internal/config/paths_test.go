package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/google/go-cmp/cmp"
)

func TestPiDirectoriesDependOnTheHomeAndWorkingDirectory(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(home, "a", "b")
	if err := os.MkdirAll(work, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Chdir(work)
	c := config.Default().Pi
	if got, want := c.SessionDirectory(), filepath.Join(home, ".pi/agent/sessions"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	roots := []string{filepath.Join(home, ".pi/agent/sessions"), filepath.Join(work, ".pi/sessions"), filepath.Join(home, "a/.pi/sessions"), filepath.Join(home, ".pi/sessions")}
	if d := cmp.Diff(roots, c.SessionRootDirectories()); d != "" {
		t.Errorf("the roots (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{work}, c.ExportDirectories()); d != "" {
		t.Errorf("where pages go (-want +got):\n%s", d)
	}
	t.Setenv("HOME", "")
	if got := c.SessionDirectory(); got != "" {
		t.Errorf("without a home directory: got %q, want nothing written", got)
	}
	c.SessionDir, c.ExportDirs = "", []string{"/", "~/x", "out"}
	if got := c.SessionDirectory(); got != "" {
		t.Errorf("switched off: got %q", got)
	}
	if d := cmp.Diff([]string{filepath.Join(work, "out")}, c.ExportDirectories()); d != "" {
		t.Errorf("where pages go (-want +got):\n%s", d)
	}
}
