package command

import (
	"io/fs"
	"os"
)

// keepOwner does nothing: a file has the rights of its directory.
func keepOwner(*os.File, fs.FileInfo) error { return nil }
