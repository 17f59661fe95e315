package config

import (
	"os"
	"path/filepath"
	"slices"
)

// SessionDirectory returns the directory for pi sessions. A relative one is below data_dir. It returns "" if
// none is set, or it is below a home directory or a data_dir that does not exist.
func (c Config) SessionDirectory() string {
	dir := underHome(c.Pi.SessionDir)
	switch {
	case dir == "" || filepath.IsAbs(dir):
		return dir
	case c.DataDir == "":
		return ""
	}
	return filepath.Join(c.DataDir, dir)
}

// SessionRootDirectories returns the directories below which pi sessions are listed and
// loaded. A relative one is searched in the working directory and each directory above it, up
// to the home directory (facts of pi-server, section 7.3).
func (c Pi) SessionRootDirectories() []string {
	var all []string
	for _, dir := range c.SessionRoots {
		if dir = underHome(dir); filepath.IsAbs(dir) {
			all = append(all, dir)
			continue
		}
		if dir != "" {
			all = append(all, upwards(dir)...)
		}
	}
	return slices.Compact(all)
}

// ExportDirectories returns the directories below which pages may be exported, without the
// root of the file system.
func (c Pi) ExportDirectories() []string {
	var all []string
	for _, dir := range c.ExportDirs {
		if dir = underHome(dir); dir == "" {
			continue
		}
		if dir, err := filepath.Abs(dir); err == nil && dir != filepath.Dir(dir) {
			all = append(all, dir)
		}
	}
	return all
}

// underHome is ExpandHome; it returns "" if the home directory is unknown.
func underHome(path string) string {
	path, _ = ExpandHome(path) // which is "" then
	return path
}

func upwards(name string) []string {
	home, _ := os.UserHomeDir() // "" ends no search
	dir, err := os.Getwd()
	if err != nil {
		return nil
	}
	var all []string
	for {
		all = append(all, filepath.Join(dir, name))
		up := filepath.Dir(dir)
		if dir == home || up == dir {
			return all
		}
		dir = up
	}
}
