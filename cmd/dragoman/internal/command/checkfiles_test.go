package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

// A hub with a broken file does not start, and checking the configuration reports the file.
func TestCheckReadsTheFilesThatSettingsName(t *testing.T) {
	dir := t.TempDir()
	settings, good, bad := filepath.Join(dir, "dragoman.yaml"), filepath.Join(dir, "good.yaml"), filepath.Join(dir, "bad.yaml")
	for path, text := range map[string]string{good: "tokens:\n- principal: alice\n  sha256: " + strings.Repeat("ab", 32) + "\n", bad: "[secret\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for setting, want := range map[string]int{
		"auth.tokens: " + good: command.ExitDone, "auth.tokens: " + bad: command.ExitUsage, "auth.tokens: " + dir + "/none": command.ExitUsage,
		"coven.secrets: " + bad: command.ExitUsage, "parallax.secrets: " + bad: command.ExitUsage,
	} {
		if err := os.WriteFile(settings, []byte(setting), 0o600); err != nil {
			t.Fatal(err)
		}
		code, _, stderr := run(t, "check", "--config", settings)
		if code != want || want == command.ExitUsage && !strings.Contains(stderr, setting) || strings.Contains(stderr, "[secret") {
			t.Errorf("%s: got %d and %q, want %d and the setting with its file named", setting, code, stderr, want)
		}
	}
}
