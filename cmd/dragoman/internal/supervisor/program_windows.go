package supervisor

import (
	"errors"
	"io/fs"
	"os/exec"
)

// separators are what makes a name of a program a path.
const separators = `\/:`

// executable returns the path of the program that a path names, with the extension that makes it
// one (PATHEXT) where the path has none, and an error if there is no program.
func executable(path string) (string, error) {
	program, err := exec.LookPath(path)
	if errors.Is(err, exec.ErrNotFound) {
		return path, fs.ErrNotExist
	}
	return program, err
}
