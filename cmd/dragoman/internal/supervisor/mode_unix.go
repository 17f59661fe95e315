//go:build unix

package supervisor

import (
	"io/fs"
	"os"
)

// Allows reports whether the mode of a file has one of some bits, and returns the mode. It is false
// for a file that is not there.
func Allows(path string, bits fs.FileMode) (mode fs.FileMode, is bool) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, false
	}
	return info.Mode().Perm(), info.Mode().Perm()&bits != 0
}
