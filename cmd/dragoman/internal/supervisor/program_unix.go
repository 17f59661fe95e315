//go:build unix

package supervisor

import (
	"errors"
	"io/fs"
	"os"
)

// separators are what makes a name of a program a path.
const separators = "/"

// executable returns the path of the program that a path names, and an error unless it can be
// executed.
func executable(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return path, errors.Unwrap(err)
	case info.IsDir() || info.Mode()&0o111 == 0:
		return path, fs.ErrPermission
	}
	return path, nil
}
