package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// SessionDirectory is where pi sessions are written, or "" when they are not: it is
// switched off, or below the home directory of somebody who has none.
func (c Pi) SessionDirectory() string { return underHome(c.SessionDir) }

// SessionRootDirectories are the directories below which pi sessions are listed and loaded. One
// that is not absolute stands for that name in the working directory and in each
// above it, up to the home directory (facts of pi-server, section 7.3).
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

// ExportDirectories are the directories below which pages may be exported: never all of
// them, as when the hub works in /.
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

// underHome returns a path with the home directory for ~, or "" when nobody knows
// that.
func underHome(path string) string {
	rest, ok := strings.CutPrefix(path, "~/")
	if !ok {
		return path
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, rest)
}

func upwards(name string) []string {
	home, _ := os.UserHomeDir() // "" is above nobody
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
