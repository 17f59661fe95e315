package service

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dragoman-hub/dragoman/core"
)

// errTaken means that another hub uses the data directory.
var errTaken = errors.New("another hub uses it")

// lockDir creates a data directory if it is missing and locks it, until the returned file
// is closed or the process ends. It returns errTaken if another hub holds the lock.
func lockDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		f.Close()
		return nil, errTaken
	}
	return f, nil
}

// stableID returns the id of the hub that keeps its data in dir, so that agents see the
// same hub after a restart.
func stableID(dir string) (string, error) {
	path := filepath.Join(dir, "id")
	if b, err := os.ReadFile(path); err == nil && len(b) > 0 {
		return string(b), nil
	}
	id := core.NewID()
	if err := os.WriteFile(path, []byte(id), 0o600); err != nil {
		return "", fmt.Errorf("storing the id of the hub: %w", err)
	}
	return id, nil
}
