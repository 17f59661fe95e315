package config

import (
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
)

// FileName is the name of a settings file that is found without being named.
const FileName = "dragoman.yaml"

// NamedFile returns the settings file that --config or its variable names, and which of them does. Named is "" where
// neither is given; one that is given as empty is no file.
func NamedFile(fs *pflag.FlagSet, environ []string) (path, named string) {
	if f := fs.Lookup("config"); f != nil && f.Changed {
		return f.Value.String(), "--config"
	}
	if path, set := lookup(environ, VariablePrefix+"CONFIG"); set {
		return path, VariablePrefix + "CONFIG"
	}
	return "", ""
}

// FoundFile returns the settings file that is read where none is named: that of the working directory, else that of
// the user; "" where neither is there.
func FoundFile(environ []string) string {
	for _, path := range []string{FileName, filepath.Join(UserDir(environ), FileName)} {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

// UserDir returns the directory of the user's own files, which may not be there: "dragoman" in $XDG_CONFIG_HOME, or in
// ~/.config where that is not an absolute path (XDG Base Directory Specification).
func UserDir(environ []string) string {
	above, _ := lookup(environ, "XDG_CONFIG_HOME")
	if !filepath.IsAbs(above) {
		above, _ = ExpandHome("~/.config")
	}
	return filepath.Join(above, "dragoman")
}
