//go:build unix

package credentials

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives a file the owner of another, if that exists: the hub reads it as that user.
func keepOwner(of string, to *os.File) error {
	info, err := os.Stat(of)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	if !known || int(owner.Uid) == os.Geteuid() {
		return nil
	}
	return to.Chown(int(owner.Uid), int(owner.Gid))
}
