package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A hub with a broken file does not start: who asks before must be told.
func TestCheckReadsTheFilesThatSettingsName(t *testing.T) {
	dir := t.TempDir()
	settings, good, bad := filepath.Join(dir, "dragoman.yaml"), filepath.Join(dir, "good.yaml"), filepath.Join(dir, "bad.yaml")
	for path, text := range map[string]string{good: "tokens:\n- principal: alice\n  sha256: " + strings.Repeat("ab", 32) + "\n", bad: "[secret\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for setting, want := range map[string]int{
		"auth.tokens: " + good: ExitDone, "auth.tokens: " + bad: ExitUsage, "auth.tokens: " + dir + "/none": ExitUsage,
		"coven.secrets: " + bad: ExitUsage, "parallax.secrets: " + bad: ExitUsage,
	} {
		if err := os.WriteFile(settings, []byte(setting), 0o600); err != nil {
			t.Fatal(err)
		}
		code, _, complaint := printed(t, "check", "--config", settings)
		if code != want || want == ExitUsage && !strings.Contains(complaint, setting) || strings.Contains(complaint, "[secret") {
			t.Errorf("%s: got %d and %q, want %d and the setting with its file named", setting, code, complaint, want)
		}
	}
}
