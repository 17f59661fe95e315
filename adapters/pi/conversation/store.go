package conversation

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
)

// StoreOptions make a [Store].
type StoreOptions struct {
	// Dir is where conversations are written to, links resolved; "" keeps them in memory
	// alone.
	Dir string
	// Roots are directories below which files are listed and loaded beside it, and
	// ExportDirs those below which pages may be written.
	Roots, ExportDirs []string
	// MaxBytes bounds a session file that is loaded.
	MaxBytes int64
	Log      *slog.Logger
	// Count counts an event of the store by its name.
	Count func(string)
	// Schedule has a function run by a worker.
	Schedule func(func(context.Context))
	// Trees calls use with the conversations that a file has, while nothing is added to
	// them.
	Trees func(f *File, use func([]*Tree))
	// Broken is told that a file cannot be written; err is nil once it can again.
	Broken func(f *File, err error)
}

// Store has the session files: where they may be, what is in them, and what they are to
// hold more. What a conversation grows by is written by a worker, never by the caller. A
// Store is safe for concurrent use. It calls none of its options while it holds its lock.
type Store struct {
	opts StoreOptions

	mu    sync.Mutex
	files map[string]*File // by path

	listing   sync.Mutex
	summaries map[string]map[string]summary // of files, by scope and path; of the one who lists
}

// NewStore returns a store without files.
func NewStore(o StoreOptions) *Store {
	return &Store{opts: o, files: map[string]*File{}, summaries: map[string]map[string]summary{}}
}

// File is a session file that grows: what it is to hold more waits here, in order, until
// a worker has written it. All sessions of one path share it. A nil File keeps nothing.
type File struct {
	store *Store
	at    Place
	path  string     // of at
	disk  sync.Mutex // held while it is written; taken before any other lock

	// Guarded by Store.mu.
	users int
	lines [][]byte // that are not on the disk yet
	// exists says that it is there, or is made with the next line. A conversation
	// without an answer is not worth a file.
	exists bool
	made   bool // by this server, on the disk
	busy   bool // a worker will write it
	broken bool // the last attempt failed
}

// Begin returns the file of a new conversation of a scope, for one session; nil where
// conversations are kept in memory alone. The caller lets go of it with [File.Release].
func (s *Store) Begin(scope string, t *Tree) *File {
	dir := s.dir(scope)
	if dir == "" {
		return nil
	}
	f := s.hold(Place{dir, fileName(t)})
	s.mu.Lock()
	f.lines = append(f.lines, t.Header.Line())
	s.mu.Unlock()
	for _, n := range t.Nodes {
		f.Append(n)
	}
	return f
}

// Open returns the file that a conversation was read from, for one session. The caller
// lets go of it with [File.Release].
func (s *Store) Open(from Stored) *File {
	f := s.hold(from.At)
	s.mu.Lock()
	defer s.mu.Unlock()
	f.exists, f.made = true, true
	return f
}

// hold returns the file of a place for one more session.
func (s *Store) hold(at Place) *File {
	path := at.Path()
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files[path]
	if f == nil {
		f = &File{store: s, at: at, path: path}
		s.files[path] = f
	}
	f.users++
	return f
}

// Release lets go of the file for one session. What is not written yet is still written.
func (f *File) Release() {
	if f == nil {
		return
	}
	s := f.store
	s.mu.Lock()
	f.users--
	last := f.users == 0 && !f.busy
	write := last && f.exists && len(f.lines) > 0 // a last attempt
	if f.busy = f.busy || write; last && !write {
		s.forget(f)
	}
	s.mu.Unlock()
	if write {
		s.writeLater(f)
	}
}

// forget drops a file that no session has any more. Store.mu is held.
func (s *Store) forget(f *File) {
	if s.files[f.path] == f {
		delete(s.files, f.path)
	}
}

// Path is where the file is, or will be; "" of a nil File.
func (f *File) Path() string {
	if f == nil {
		return ""
	}
	return f.path
}

// Exists reports whether the file is there, or is made with the next entry.
func (f *File) Exists() bool { return f.is(func() bool { return f.exists }) }

// OnDisk reports whether the file is on the disk.
func (f *File) OnDisk() bool { return f.is(func() bool { return f.made }) }

// Broken reports whether the last attempt to write the file failed.
func (f *File) Broken() bool { return f.is(func() bool { return f.broken }) }

func (f *File) is(what func() bool) bool {
	if f == nil {
		return false
	}
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	return what()
}

// ForceCreate has the file made even though nobody has answered yet.
func (f *File) ForceCreate() {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	f.exists = true
}

// Append lets the file have an entry, which a worker writes.
func (f *File) Append(n *Node) {
	if f == nil {
		return
	}
	s := f.store
	s.mu.Lock()
	f.lines = append(f.lines, n.Line)
	f.exists = f.exists || n.Role == RoleAssistant
	write := f.exists && !f.busy
	f.busy = f.busy || write
	s.mu.Unlock()
	if write {
		s.writeLater(f)
	}
}

func (s *Store) writeLater(f *File) {
	s.opts.Schedule(func(context.Context) { s.write(f) })
}

// write brings to the disk what the file is to hold. What cannot be written stays, and is
// tried again with the next entry; a file that somebody has removed is written again.
func (s *Store) write(f *File) {
	f.disk.Lock()
	defer f.disk.Unlock()
	for {
		s.mu.Lock()
		lines, made := f.lines, f.made
		if f.lines = nil; len(lines) == 0 {
			s.written(f)
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		err := f.at.append(made, lines)
		s.mu.Lock()
		if err == nil {
			f.made = true
		} else {
			f.lines = append(lines, f.lines...)
		}
		s.mu.Unlock()
		if err == nil {
			s.report(f, nil)
			continue
		}
		if made && errors.Is(err, fs.ErrNotExist) && s.rewrite(f) {
			continue
		}
		s.opts.Count("session_file.failed")
		s.report(f, err)
		s.mu.Lock()
		s.written(f)
		s.mu.Unlock()
		return
	}
}

// written ends an attempt to write a file. Store.mu is held.
func (s *Store) written(f *File) {
	if f.busy = false; f.users > 0 {
		return
	}
	if len(f.lines) > 0 {
		s.opts.Log.Warn("a session has ended whose file could not be written", "path", f.path, "lines", len(f.lines))
	}
	s.forget(f)
}

// report tells that the file cannot be written, or can again, where that is news.
func (s *Store) report(f *File, err error) {
	s.mu.Lock()
	news := f.broken != (err != nil)
	f.broken = err != nil
	s.mu.Unlock()
	if !news {
		return
	}
	if err != nil {
		s.opts.Log.Warn("a session file cannot be written; what it misses is kept in memory and tried again", "path", f.path, "error", err)
	}
	s.opts.Broken(f, err)
}

// rewrite has a file that is no longer there written again, with all that its sessions
// know, the latest last. It reports false when it has none.
func (s *Store) rewrite(f *File) (known bool) {
	s.opts.Trees(f, func(trees []*Tree) {
		trees = slices.DeleteFunc(trees, func(t *Tree) bool { return len(t.Nodes) == 0 })
		if known = len(trees) > 0; !known {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		f.made, f.lines = false, linesOf(trees)
	})
	if known {
		s.opts.Log.Warn("a session file is gone; it is written again", "path", f.path)
	}
	return known
}

// linesOf returns the lines of a file with the entries of all the trees, each once.
func linesOf(trees []*Tree) [][]byte {
	slices.SortFunc(trees, func(a, b *Tree) int {
		return strings.Compare(a.Nodes[len(a.Nodes)-1].Timestamp(), b.Nodes[len(b.Nodes)-1].Timestamp())
	})
	header := trees[0].Header
	header.Version = sessionfile.Version // as its entries are by now
	lines := [][]byte{header.Line()}
	known := map[string]bool{}
	for _, t := range trees {
		for _, n := range t.Nodes {
			if id := n.ID(); !known[id] {
				known[id] = true
				lines = append(lines, n.Line)
			}
		}
	}
	return lines
}

// FlushAll brings to the disk what could not be written before: it is the last attempt.
// It waits for the disk.
func (s *Store) FlushAll() {
	for _, f := range s.filesThat(func(f *File) bool { return f.exists && len(f.lines) > 0 }) {
		s.write(f)
		s.mu.Lock()
		lines := len(f.lines)
		s.mu.Unlock()
		if lines > 0 {
			s.opts.Log.Error("the server ends, and a session file could not be written", "path", f.path, "lines", lines)
		}
	}
}

// flush brings to the disk what the file of a path is to hold already. It waits for the
// disk.
func (s *Store) flush(path string) {
	for _, f := range s.filesThat(func(f *File) bool { return f.exists && f.path == path }) {
		s.write(f)
	}
}

// flushReleased brings to the disk what sessions left that are not in memory any more. It
// waits for the disk.
func (s *Store) flushReleased() {
	for _, f := range s.filesThat(func(f *File) bool { return f.exists && f.users == 0 }) {
		s.write(f)
	}
}

// Counts is how many files sessions have or that are still to be written, and Busy how many
// of them a worker will write.
func (s *Store) Counts() (held, busy int) {
	return len(s.filesThat(func(*File) bool { return true })), len(s.filesThat(func(f *File) bool { return f.busy }))
}

func (s *Store) filesThat(which func(*File) bool) []*File {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*File
	for _, f := range s.files {
		if which(f) {
			all = append(all, f)
		}
	}
	return all
}
