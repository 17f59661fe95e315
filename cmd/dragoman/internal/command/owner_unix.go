//go:build unix

package command

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives a new file the mode and, for root, the owner of the one that it replaces.
func keepOwner(f *os.File, old fs.FileInfo) error {
	if of, is := old.Sys().(*syscall.Stat_t); is {
		_ = f.Chown(int(of.Uid), int(of.Gid)) // others own what they write
	}
	return f.Chmod(old.Mode().Perm())
}
