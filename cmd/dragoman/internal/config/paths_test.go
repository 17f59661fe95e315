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
	all := config.Default()
	for _, tt := range []struct{ data, sessions, want string }{
		{"", all.Pi.SessionDir, ""},
		{"/data", all.Pi.SessionDir, "/data/pi-sessions"},
		{"/data", "~/.pi/agent/sessions", filepath.Join(home, ".pi/agent/sessions")},
		{"", "/srv/sessions", "/srv/sessions"},
		{"/data", "", ""},
	} {
		all.DataDir, all.Pi.SessionDir = tt.data, tt.sessions
		if got := all.SessionDirectory(); got != tt.want {
			t.Errorf("%s below %q: got %q, want %q", tt.sessions, tt.data, got, tt.want)
		}
	}
	c := all.Pi
	roots := []string{filepath.Join(home, ".pi/agent/sessions"), filepath.Join(work, ".pi/sessions"), filepath.Join(home, "a/.pi/sessions"), filepath.Join(home, ".pi/sessions")}
	if d := cmp.Diff(roots, c.SessionRootDirectories()); d != "" {
		t.Errorf("the roots (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{work}, c.ExportDirectories()); d != "" {
		t.Errorf("where pages go (-want +got):\n%s", d)
	}
	t.Setenv("HOME", "")
	all.Pi.SessionDir = "~/sessions"
	if got := all.SessionDirectory(); got != "" {
		t.Errorf("without a home directory: got %q, want nothing written", got)
	}
	c.ExportDirs = []string{"/", "~/x", "out"}
	if d := cmp.Diff([]string{filepath.Join(work, "out")}, c.ExportDirectories()); d != "" {
		t.Errorf("where pages go (-want +got):\n%s", d)
	}
}
