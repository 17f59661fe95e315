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

// dir returns the directory for the conversations of a scope, or "". An authenticated
// principal has a directory of its own.
func (s *Store) dir(scope string) string {
	if scope == "" || s.opts.Dir == "" {
		return s.opts.Dir
	}
	sum := sha256.Sum256([]byte(scope))
	return filepath.Join(s.opts.Dir, privatePrefix+hex.EncodeToString(sum[:8]))
}

// private reports whether a path, links resolved, is in the directory of a principal.
func (s *Store) private(path string) bool {
	name, err := filepath.Rel(s.opts.Dir, path)
	return err == nil && s.opts.Dir != "" && strings.HasPrefix(name, privatePrefix)
}

// roots returns the existing directories below which a scope may list and load files, links
// resolved. It reads the disk.
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

// Why a path is refused (facts, section 7.3), in the order of the checks. NotAllowed begins
// with the words of section 22 of the specification.
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

// Place is where a file is: a local name below a root directory.
type Place struct{ Root, Name string }

// Path returns the path of the file.
func (p Place) Path() string { return filepath.Join(p.Root, p.Name) }

// locate returns the place of a session file, links resolved, or why the path is refused. It
// reads the disk.
func (s *Store) locate(scope, path string) (Place, string) {
	switch {
	case !filepath.IsAbs(path):
		return Place{}, notAbsolute
	case !isSessionName(path):
		return Place{}, notJSONL
	}
	path = Resolve(path)
	at, ok := below(s.roots(scope), path)
	if !ok || scope == "" && s.private(path) {
		return Place{}, NotAllowed
	}
	return at, ""
}

// below returns the place of a path below the first of the roots that has it. All links are
// resolved.
func below(roots []string, path string) (Place, bool) {
	for _, root := range roots {
		if name, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(name) && name != "." {
			return Place{root, name}, true
		}
	}
	return Place{}, false
}

// Resolve resolves the links of a path as far as it exists. It reads the disk.
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

// read reads up to limit bytes of the file. It returns errTooLarge if the file has more than
// most bytes, and the errors of open.
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

// open opens the file, whose name must not lead out of its root even now. It returns an
// error for anything but a regular file, and never waits for another program.
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

// ErrTaken says that a file exists that must not be replaced.
var ErrTaken = errors.New("there is a file already that was not exported here; choose another outputPath")

// Replace writes the file, whose name must not lead out of its root. It returns [ErrTaken]
// if the file exists and does not have the mark in its first kilobyte. After an error the
// file is as it was before.
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
		_ = root.Remove(part) // if it exists
	}
	return err
}

// PlainError returns an error of the disk without the name of the call, and without the
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
// session directory, or on an open hub also below one of the export directories. It reports
// false of any other path. It reads the disk.
func (s *Store) ExportPlace(scope, path string) (Place, bool) {
	dirs := []string{s.dir(scope)}
	if scope == "" {
		dirs = append(dirs, s.opts.ExportDirs...)
	}
	var roots []string
	for _, dir := range dirs {
		if dir != "" {
			roots = append(roots, Resolve(dir))
		}
	}
	return below(roots, Resolve(path))
}
