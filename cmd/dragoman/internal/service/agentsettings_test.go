package service

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAnAgentSettingsFileThatCannotBeReadOrWrittenIsAnError(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, settingsName), []byte(`{"agents":{"a":{},"a":{}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := loadAgentSettings(dir); err == nil || !strings.Contains(err.Error(), settingsName) {
		t.Errorf("a broken file: got %v, want it named", err)
	}
	// Whoever changes a setting learns that it cannot be stored.
	_ = os.Remove(filepath.Join(dir, settingsName))
	save, _, err := loadAgentSettings(dir)
	if err == nil {
		err = os.Mkdir(filepath.Join(dir, settingsName), 0o700)
	}
	if err == nil {
		err = save(nil)
	}
	if err == nil {
		t.Error("got no error, want an error that it could not be stored")
	}
	if _, _, err := loadAgentSettings(""); err != nil {
		t.Errorf("no data directory: got %v, want nothing stored", err)
	}
}
