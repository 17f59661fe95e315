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
	"github.com/dragoman-hub/dragoman/core/lru"
)

// StoreOptions make a [Store].
type StoreOptions struct {
	// Dir is where conversations are written, links resolved; "" keeps them in memory only.
	Dir string
	// Roots are further directories below which files are listed and loaded. ExportDirs are
	// those below which pages may be written.
	Roots, ExportDirs []string
	// MaxBytes bounds a session file that is loaded.
	MaxBytes int64
	Log      *slog.Logger
	// Count adds 1 to the counter of a name.
	Count func(string)
	// Schedule queues a function for a worker.
	Schedule func(func(context.Context))
	// Trees calls use with the conversations of a file; they must not grow meanwhile.
	Trees func(f *File, use func([]*Tree))
	// Broken is called when a file cannot be written, and with nil once it can again.
	Broken func(f *File, err error)
}

// Store lists, reads and writes session files. Workers write new entries, never the caller.
// A Store is safe for concurrent use. It calls none of its options while it holds its lock.
type Store struct {
	opts StoreOptions

	mu    sync.Mutex
	files map[string]*File // by path

	listing   sync.Mutex
	summaries *lru.Cache[string, summary] // by path; guarded by listing
}

// NewStore returns a store without files.
func NewStore(o StoreOptions) *Store {
	return &Store{opts: o, files: map[string]*File{}, summaries: lru.New(lru.Options[string, summary]{Count: maxListed})}
}

// File is a session file that grows: its new lines wait here, in order, until a worker has
// written them. All sessions of one path share it. A nil File keeps nothing.
type File struct {
	store *Store
	at    Place
	path  string     // of at
	disk  sync.Mutex // held while the file is written; taken before any other lock

	// Guarded by Store.mu.
	users int      // sessions
	lines [][]byte // not on the disk yet
	// exists says that the file is on the disk or will be with the next line. A conversation
	// without an answer is not worth a file.
	exists bool
	onDisk bool
	busy   bool // a worker will write the lines
	broken bool // the last attempt failed
}

// Begin returns the file of a new conversation of a scope; nil where conversations are kept
// in memory only. The caller, one session, must [File.Release] it.
func (s *Store) Begin(scope string, t *Tree) *File {
	dir := s.dir(scope)
	if dir == "" {
		return nil
	}
	f := s.acquire(Place{dir, fileName(t)})
	s.mu.Lock()
	f.lines = append(f.lines, t.Header.Line())
	s.mu.Unlock()
	for _, n := range t.Nodes {
		f.Append(n)
	}
	return f
}

// Open returns the file that a conversation was read from. The caller, one session, must
// [File.Release] it.
func (s *Store) Open(from Stored) *File {
	f := s.acquire(from.At)
	s.mu.Lock()
	defer s.mu.Unlock()
	f.exists, f.onDisk = true, true
	return f
}

// acquire returns the file of a place for one more session.
func (s *Store) acquire(at Place) *File {
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

// Release ends the use of the file by one session. Its lines are still written.
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

// forget drops a file that no session uses. Store.mu is held.
func (s *Store) forget(f *File) {
	if s.files[f.path] == f {
		delete(s.files, f.path)
	}
}

// Path returns where the file is or will be; "" of a nil File.
func (f *File) Path() string {
	if f == nil {
		return ""
	}
	return f.path
}

// Exists reports whether the file is on the disk or will be with the next entry.
func (f *File) Exists() bool { return f.is(func() bool { return f.exists }) }

// OnDisk reports whether the file is on the disk.
func (f *File) OnDisk() bool { return f.is(func() bool { return f.onDisk }) }

// Broken reports whether the last attempt to write the file failed.
func (f *File) Broken() bool { return f.is(func() bool { return f.broken }) }

// is evaluates a condition under the lock; it is false of a nil File.
func (f *File) is(condition func() bool) bool {
	if f == nil {
		return false
	}
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	return condition()
}

// ForceCreate creates the file with the next entry even if nobody has answered yet.
func (f *File) ForceCreate() {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	f.exists = true
}

// Append adds an entry, which a worker writes.
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

// write writes the lines of a file. Lines that cannot be written stay and are tried again
// with the next entry. A file that somebody removed is written again as a whole.
func (s *Store) write(f *File) {
	f.disk.Lock()
	defer f.disk.Unlock()
	for {
		s.mu.Lock()
		lines, onDisk := f.lines, f.onDisk
		if f.lines = nil; len(lines) == 0 {
			s.written(f)
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		err := f.at.append(onDisk, lines)
		s.mu.Lock()
		if err == nil {
			f.onDisk = true
		} else {
			f.lines = append(lines, f.lines...)
		}
		s.mu.Unlock()
		if err == nil {
			s.report(f, nil)
			continue
		}
		if onDisk && errors.Is(err, fs.ErrNotExist) && s.rewrite(f) {
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
		s.opts.Log.Warn("the file of a session that has ended could not be written", "path", f.path, "lines", len(f.lines))
	}
	s.forget(f)
}

// report reports when a file can no longer be written, and when it can again.
func (s *Store) report(f *File, err error) {
	s.mu.Lock()
	changed := f.broken != (err != nil)
	f.broken = err != nil
	s.mu.Unlock()
	if !changed {
		return
	}
	if err != nil {
		s.opts.Log.Warn("a session file cannot be written; missing lines are kept in memory and tried again", "path", f.path, "error", err)
	}
	s.opts.Broken(f, err)
}

// rewrite queues all entries of a removed file again. It reports false if no session has
// entries of it.
func (s *Store) rewrite(f *File) (known bool) {
	s.opts.Trees(f, func(trees []*Tree) {
		trees = slices.DeleteFunc(trees, func(t *Tree) bool { return len(t.Nodes) == 0 })
		if known = len(trees) > 0; !known {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		f.onDisk, f.lines = false, linesOf(trees)
	})
	if known {
		s.opts.Log.Warn("a session file was removed; it is written again", "path", f.path)
	}
	return known
}

// linesOf returns the lines of a file with the entries of all trees, each once, those of the
// tree that grew last at the end.
func linesOf(trees []*Tree) [][]byte {
	slices.SortFunc(trees, func(a, b *Tree) int {
		return strings.Compare(a.Nodes[len(a.Nodes)-1].Timestamp(), b.Nodes[len(b.Nodes)-1].Timestamp())
	})
	header := trees[0].Header
	header.Version = sessionfile.Version // to which its entries were converted
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

// FlushAll writes the lines of all files, in a last attempt. It waits for the disk.
func (s *Store) FlushAll() {
	for _, f := range s.filesThat(func(f *File) bool { return f.exists && len(f.lines) > 0 }) {
		s.write(f)
		s.mu.Lock()
		lines := len(f.lines)
		s.mu.Unlock()
		if lines > 0 {
			s.opts.Log.Error("the server stops and a session file could not be written", "path", f.path, "lines", lines)
		}
	}
}

// flush writes the lines of the file of a path. It waits for the disk.
func (s *Store) flush(path string) {
	for _, f := range s.filesThat(func(f *File) bool { return f.exists && f.path == path }) {
		s.write(f)
	}
}

// flushReleased writes the lines of files that no session uses. It waits for the disk.
func (s *Store) flushReleased() {
	for _, f := range s.filesThat(func(f *File) bool { return f.exists && f.users == 0 }) {
		s.write(f)
	}
}

// Counts returns how many files are in use or not written yet, and how many of them a worker
// will write.
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
