//go:build unix

package nats

import (
	"errors"
	"os"
)

// syncDir makes the names in a directory last over a loss of power.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
