package command_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

// A path with ~ is that of the home directory, and an error where that is unknown: it is neither left out nor taken as
// the name of a file.
func TestPathsBelowTheHomeDirectory(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "file"), []byte("no PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		want string // in stderr, where the home directory is known
	}{
		{[]string{"agents", "--ca", "~/file"}, "--ca (DRAGOMAN_CA) " + home + "/file: no certificate is in it"},
		{[]string{"agents", "--cert", "~/none", "--key", "~/file"}, "open " + home + "/none: no such file"},
		{[]string{"agents", "--cert", "~/file", "--key", "~/none"}, "open " + home + "/none: no such file"},
	} {
		for dir, want := range map[string]string{home: tt.want, "": "nobody knows what ~ is here, since HOME is not set: write the whole path"} {
			t.Setenv("HOME", dir)
			var stderr strings.Builder
			code := command.Run(t.Context(), tt.args, command.Streams{In: io.NopCloser(strings.NewReader("")), Out: nopCloser{io.Discard}, Err: &stderr})
			if code != command.ExitUsage || !strings.Contains(stderr.String(), want) {
				t.Errorf("HOME=%q, %q: got %d and %q, want %d and %q", dir, tt.args, code, stderr.String(), command.ExitUsage, want)
			}
		}
	}
}
