package service

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAFileOfTermsThatCannotBeReadOrWrittenIsAnError(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, termsFile), []byte(`{"agents":{"a":{},"a":{}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := termsIn(dir); err == nil || !strings.Contains(err.Error(), termsFile) {
		t.Errorf("a file that is broken: got %v, want it named", err)
	}
	// What cannot be kept is told to who sets it.
	_ = os.Remove(filepath.Join(dir, termsFile))
	keep, _, err := termsIn(dir)
	if err == nil {
		err = os.Mkdir(filepath.Join(dir, termsFile), 0o700)
	}
	if err == nil {
		err = keep(nil)
	}
	if err == nil {
		t.Error("got no error, want that it could not be kept")
	}
	if _, _, err := termsIn(""); err != nil {
		t.Errorf("no data directory: got %v, want nothing kept", err)
	}
}
