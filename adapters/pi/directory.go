package pi

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
)

// checkDirectory returns why a session cannot have the working directory, or "".
// The directory is checked as pi-server does; agents run where they run. It reads the
// disk.
func checkDirectory(cwd string) string {
	switch {
	case strings.Contains(cwd, "\x00") || strings.HasPrefix(cwd, "~"):
		return "CWD contains potentially dangerous path components"
	case !filepath.IsAbs(cwd):
		return "CWD must be an absolute path"
	case command.Units(cwd) > command.MaxPath:
		return "CWD too long (max 4096 characters)"
	}
	info, err := os.Stat(cwd)
	if err != nil || !info.IsDir() {
		return "CWD must point to an existing directory"
	}
	return ""
}
