package pi

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// privatePrefix begins the names of the directories that belong to one principal.
const privatePrefix = "principal-"

// sessionDir is where the conversations of a scope are written, or "". Those of an
// authenticated principal have a directory of their own.
func (s *Server) sessionDir(scope string) string {
	if scope == "" || s.opts.SessionDir == "" {
		return s.opts.SessionDir
	}
	sum := sha256.Sum256([]byte(scope))
	return filepath.Join(s.opts.SessionDir, privatePrefix+hex.EncodeToString(sum[:8]))
}

// private reports whether a path, links resolved, is in the directory of a principal,
// from whichever root it was come upon.
func (s *Server) private(path string) bool {
	name, err := filepath.Rel(s.opts.SessionDir, path)
	return err == nil && s.opts.SessionDir != "" && strings.HasPrefix(name, privatePrefix)
}

// roots returns the directories below which a scope may list and load files, links
// resolved. Those that are not there are left out. It reads the disk.
func (s *Server) roots(scope string) []string {
	dirs := []string{s.sessionDir(scope)}
	if scope == "" {
		dirs = append(dirs, s.opts.SessionRoots...)
	}
	var all []string
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		if found, err := filepath.EvalSymlinks(dir); err == nil && !slices.Contains(all, found) {
			all = append(all, found)
		}
	}
	return all
}

// The reasons for which a path is refused (facts, section 7.3), in the order in
// which they are looked for. That of a place begins with the words of section 22 of
// the specification.
const (
	notAbsolute  = "sessionPath must be an absolute path"
	notJSONL     = "sessionPath must point to a .jsonl or .json session file"
	notAllowed   = "sessionPath must be under an allowed session directory for this server (e.g. ~/.pi/agent/sessions/ or this project's .pi/sessions/)"
	notASession  = "sessionPath must point to an existing session file"
	cannotBeRead = "Failed to load session from "
)

// isSessionName reports whether a file may be a session by its name.
func isSessionName(path string) bool {
	ext := filepath.Ext(path)
	return ext == ".jsonl" || ext == ".json"
}

// place is where a session file stands: in a root, by a name that leads nowhere
// else.
type place struct{ root, name string }

func (p place) path() string { return filepath.Join(p.root, p.name) }

// locate finds the file of a path, links resolved. It returns why the path is refused,
// or "". It reads the disk.
func (s *Server) locate(scope, path string) (place, string) {
	switch {
	case !filepath.IsAbs(path):
		return place{}, notAbsolute
	case !isSessionName(path):
		return place{}, notJSONL
	}
	path = resolve(path)
	for _, root := range s.roots(scope) {
		name, err := filepath.Rel(root, path)
		if err != nil || !filepath.IsLocal(name) || name == "." || scope == "" && s.private(path) {
			continue
		}
		return place{root, name}, ""
	}
	return place{}, notAllowed
}

// resolve follows the links of a path as far as it is there.
func resolve(path string) string {
	path = filepath.Clean(path)
	if found, err := filepath.EvalSymlinks(path); err == nil {
		return found
	}
	if dir := filepath.Dir(path); dir != path {
		return filepath.Join(resolve(dir), filepath.Base(path))
	}
	return path
}

var (
	errNotRegular = errors.New("it is no regular file")
	errTooLarge   = errors.New("it is too large")
)

// read reads up to limit bytes of the file. It returns an error when the file has more
// than most bytes, and the errors of open.
func (p place) read(limit, most int64) ([]byte, error) {
	f, info, err := p.open(os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > most {
		return nil, errTooLarge
	}
	return io.ReadAll(io.LimitReader(f, limit))
}

// open opens the file, whose name may not lead out of its root even now. It returns an
// error for what is no regular file, and never waits for another program.
func (p place) open(flags int) (*os.File, os.FileInfo, error) {
	root, err := os.OpenRoot(p.root)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(p.name, flags|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}
