package service_test

import (
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

// What a hub stores is for the user that runs it alone.
func TestTheDataDirectoryIsForItsOwnerAlone(t *testing.T) {
	c := config.Local()
	c.DataDir = filepath.Join(t.TempDir(), "data")
	startHub(t, c)
	files := 0
	err := filepath.WalkDir(c.DataDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if files++; path == c.DataDir && info.Mode().Perm() != 0o700 {
			t.Errorf("%s: got the mode %04o, want 0700: nobody else reaches what is in it", path, info.Mode().Perm())
		}
		return nil
	})
	if err != nil || files < 3 {
		t.Errorf("got %d files and %v, want those of a hub", files, err)
	}
}
