package pi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
)

// file is a session file that grows: what it is to hold more waits here, in order,
// until a worker has written it. All sessions of one path share it. Server.mu guards
// it.
type file struct {
	path  string
	disk  sync.Mutex // held while it is written; taken before Server.mu
	users int
	lines [][]byte // that are not on the disk yet
	// exists says that it is there, or is made with the next line. A conversation
	// without an answer is not worth a file.
	exists bool
	made   bool // by this server, on the disk
	busy   bool // a worker will write it
	broken bool // the last attempt failed
}

// fileName is the path below dir of a new conversation (facts, section 7.3).
func fileName(dir string, t *tree) string {
	folder := strings.NewReplacer("/", "-", `\`, "-", ":", "-").Replace(strings.TrimPrefix(t.header.Cwd, "/"))
	stamp := strings.NewReplacer(":", "-", ".", "-").Replace(t.header.Timestamp)
	return filepath.Join(dir, "--"+folder+"--", stamp+"_"+t.header.ID+".jsonl")
}

// beginTree gives the session a new conversation, and that a file. Server.mu is held.
func (s *Server) beginTree(ss *session, t *tree) {
	s.letGo(ss.file)
	ss.tree, ss.file = t, nil
	dir := s.sessionDir(ss.key.scope)
	if dir == "" {
		return
	}
	ss.file = s.hold(fileName(dir, t))
	ss.file.lines = append(ss.file.lines, t.header.Line())
	for _, n := range t.nodes {
		s.enter(ss, n)
	}
}

// hold returns the file of a path for one more session. Server.mu is held.
func (s *Server) hold(path string) *file {
	f := s.files[path]
	if f == nil {
		f = &file{path: path}
		s.files[path] = f
	}
	f.users++
	return f
}

// letGo takes back hold. What is not written yet is still written. Server.mu is held.
func (s *Server) letGo(f *file) {
	if f == nil {
		return
	}
	if f.users--; f.users > 0 || f.busy {
		return
	}
	if f.exists && len(f.lines) > 0 { // a last attempt
		s.schedule(f)
		return
	}
	s.forget(f)
}

// forget drops a file that no session has any more.
func (s *Server) forget(f *file) {
	if s.files[f.path] == f {
		delete(s.files, f.path)
	}
}

// schedule has the file written. Server.mu is held.
func (s *Server) schedule(f *file) {
	f.busy = true
	s.jobs.add(func(context.Context) { s.writeFile(f) })
}

// add adds an entry to the session's conversation and its file. Server.mu is held.
func (s *Server) add(ss *session, b sessionfile.Body) *node {
	n := ss.tree.grow(b)
	s.enter(ss, n)
	return n
}

// enter lets the file of the session have an entry. Server.mu is held.
func (s *Server) enter(ss *session, n *node) {
	f := ss.file
	if f == nil {
		return
	}
	f.lines = append(f.lines, n.Line)
	if f.exists = f.exists || n.said.role == roleAssistant; f.exists && !f.busy {
		s.schedule(f)
	}
}

// writeFile brings to the disk what the file is to hold. What cannot be written stays,
// and is tried again with the next entry.
func (s *Server) writeFile(f *file) {
	f.disk.Lock()
	defer f.disk.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(f.lines) > 0 {
		lines := f.lines
		f.lines = nil
		s.mu.Unlock()
		err := appendLines(f.path, f.made, lines)
		s.mu.Lock()
		if err == nil {
			f.made, f.broken = true, false
			continue
		}
		f.lines = append(lines, f.lines...)
		s.count("session_file.failed")
		if !f.broken {
			s.opts.Log.Warn("a session file cannot be written; what it misses is kept in memory and tried again", "path", f.path, "error", err)
		}
		f.broken = true
		break
	}
	if f.busy = false; f.users == 0 {
		if len(f.lines) > 0 {
			s.opts.Log.Warn("a session has ended whose file could not be written", "path", f.path, "lines", len(f.lines))
		}
		s.forget(f)
	}
}

// flush brings to the disk what the file of a path is to hold already. It waits for
// the disk.
func (s *Server) flush(path string) {
	s.mu.Lock()
	f := s.files[path]
	due := f != nil && f.exists
	s.mu.Unlock()
	if due {
		s.writeFile(f)
	}
}

// appendLines appends lines to a file, whole or not at all. A file that is not there
// yet is made, readable by its owner alone.
func appendLines(path string, there bool, lines [][]byte) (err error) {
	flags := os.O_RDWR | os.O_APPEND
	if !there {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		flags |= os.O_CREATE
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	var b []byte
	if last := make([]byte, 1); end > 0 {
		if _, err := f.ReadAt(last, end-1); err != nil {
			return err
		}
		if last[0] != '\n' { // somebody's torn line stays one
			b = append(b, '\n')
		}
	}
	for _, l := range lines {
		b = append(append(b, l...), '\n')
	}
	if _, err = f.Write(b); err != nil {
		if undone := f.Truncate(end); undone != nil {
			err = fmt.Errorf("%w; and taking the half of it back: %w", err, undone)
		}
	}
	return err
}

// fileTime reads the time in the name of a session file.
func fileTime(name string) (time.Time, bool) {
	stamp, _, _ := strings.Cut(name, "_")
	at, err := time.Parse("2006-01-02T15-04-05-000Z", stamp)
	return at, err == nil
}
