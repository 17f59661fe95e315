package conversation

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/dragoman-hub/dragoman/core"
)

// privatePrefix begins the names of the directories that belong to one principal.
const privatePrefix = "principal-"

// dir is where the conversations of a scope are written, or "". Those of an
// authenticated principal have a directory of their own.
func (s *Store) dir(scope string) string {
	if scope == "" || s.opts.Dir == "" {
		return s.opts.Dir
	}
	sum := sha256.Sum256([]byte(scope))
	return filepath.Join(s.opts.Dir, privatePrefix+hex.EncodeToString(sum[:8]))
}

// private reports whether a path, links resolved, is in the directory of a principal,
// whichever root it was found below.
func (s *Store) private(path string) bool {
	name, err := filepath.Rel(s.opts.Dir, path)
	return err == nil && s.opts.Dir != "" && strings.HasPrefix(name, privatePrefix)
}

// roots returns the directories below which a scope may list and load files, links
// resolved. Those that are not there are left out. It reads the disk.
func (s *Store) roots(scope string) []string {
	dirs := []string{s.dir(scope)}
	if scope == "" {
		dirs = append(dirs, s.opts.Roots...)
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
	NotAllowed   = "sessionPath must be under an allowed session directory for this server (e.g. ~/.pi/agent/sessions/ or this project's .pi/sessions/)"
	NotASession  = "sessionPath must point to an existing session file"
	cannotBeRead = "Failed to load session from "
)

// isSessionName reports whether a file may be a session by its name.
func isSessionName(path string) bool {
	ext := filepath.Ext(path)
	return ext == ".jsonl" || ext == ".json"
}

// Place is where a file is: below a root, by a name that leads nowhere else.
type Place struct{ Root, Name string }

// Path is the whole path of the file.
func (p Place) Path() string { return filepath.Join(p.Root, p.Name) }

// locate finds the session file of a path, links resolved. It returns why the path is
// refused, or "". It reads the disk.
func (s *Store) locate(scope, path string) (Place, string) {
	switch {
	case !filepath.IsAbs(path):
		return Place{}, notAbsolute
	case !isSessionName(path):
		return Place{}, notJSONL
	}
	path = Resolve(path)
	for _, root := range s.roots(scope) {
		name, err := filepath.Rel(root, path)
		if err != nil || !filepath.IsLocal(name) || name == "." || scope == "" && s.private(path) {
			continue
		}
		return Place{root, name}, ""
	}
	return Place{}, NotAllowed
}

// Resolve follows the links of a path as far as it is there. It reads the disk.
func Resolve(path string) string {
	path = filepath.Clean(path)
	if found, err := filepath.EvalSymlinks(path); err == nil {
		return found
	}
	if dir := filepath.Dir(path); dir != path {
		return filepath.Join(Resolve(dir), filepath.Base(path))
	}
	return path
}

var (
	errNotRegular = errors.New("it is no regular file")
	errTooLarge   = errors.New("it is too large")
)

// read reads up to limit bytes of the file. It returns an error when the file has more
// than most bytes, and the errors of open.
func (p Place) read(limit, most int64) ([]byte, error) {
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
func (p Place) open(flags int) (*os.File, os.FileInfo, error) {
	root, err := os.OpenRoot(p.Root)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(p.Name, flags|syscall.O_NONBLOCK, 0o600)
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

// ErrTaken says that there is a file already that may not be replaced.
var ErrTaken = errors.New("there is a file already that was not exported here; choose another outputPath")

// Replace writes the file, whose name may not lead out of its root, unless there is one
// that does not have the mark in its first kilobyte: then it returns [ErrTaken]. The file
// is there whole, or as it was before.
func (p Place) Replace(data []byte, mark string) error {
	switch head, err := p.read(1<<10, math.MaxInt64); {
	case errors.Is(err, fs.ErrNotExist):
		if err := p.makeDirs(); err != nil {
			return err
		}
	case err != nil:
		return err
	case !bytes.Contains(head, []byte(mark)):
		return ErrTaken
	}
	root, err := os.OpenRoot(p.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	part := filepath.Join(filepath.Dir(p.Name), "."+core.NewID()+".part")
	if err = root.WriteFile(part, data, 0o600); err == nil {
		err = root.Rename(part, p.Name)
	}
	if err != nil {
		_ = root.Remove(part) // which is nothing, or a half
	}
	return err
}

// PlainError is an error of the disk without the name of the call that failed, and the
// path.
func PlainError(err error) error {
	var at *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &at):
		return at.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}

// ExportPlace returns where a page of that path may be written for a scope: below its
// session directory, or for everybody on an open hub below one of the export directories.
// It reports false of a path that is outside. It reads the disk.
func (s *Store) ExportPlace(scope, path string) (Place, bool) {
	dirs := []string{s.dir(scope)}
	if scope == "" {
		dirs = append(dirs, s.opts.ExportDirs...)
	}
	path = Resolve(path)
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		root := Resolve(dir)
		if name, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(name) && name != "." {
			return Place{root, name}, true
		}
	}
	return Place{}, false
}
