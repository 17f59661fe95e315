package pi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
)

// file is a session file that grows: what it is to hold more waits here, in order,
// until a worker has written it. All sessions of one path share it. Server.mu guards
// it.
type file struct {
	at    place
	path  string     // of at
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

// fileName is the path below the session directory of a new conversation (facts,
// section 7.3).
func fileName(t *conversation.Tree) string {
	folder := strings.NewReplacer("/", "-", `\`, "-", ":", "-", "\x00", "-").Replace(strings.TrimPrefix(t.Header.Cwd, "/"))
	if len(folder) > mostFolder { // which the real program cannot write
		sum := sha256.Sum256([]byte(folder))
		folder = strings.ToValidUTF8(folder[:mostFolder-2*len(sum)], "") + hex.EncodeToString(sum[:])
	}
	stamp := strings.NewReplacer(":", "-", ".", "-").Replace(t.Header.Timestamp)
	return filepath.Join("--"+folder+"--", stamp+"_"+t.Header.ID+".jsonl")
}

// mostFolder is how many bytes of the name of a directory are for that of another.
const mostFolder = 250

// beginTree gives the session a new conversation, and that a file. Server.mu is held.
func (s *Server) beginTree(ss *session, t *conversation.Tree) {
	s.letGo(ss.file)
	ss.tree, ss.file = t, nil
	dir := s.sessionDir(ss.key.scope)
	if dir == "" {
		return
	}
	ss.file = s.hold(place{dir, fileName(t)})
	ss.file.lines = append(ss.file.lines, t.Header.Line())
	for _, n := range t.Nodes {
		s.enter(ss, n)
	}
}

// hold returns the file of a place for one more session. Server.mu is held.
func (s *Server) hold(at place) *file {
	path := at.path()
	f := s.files[path]
	if f == nil {
		f = &file{at: at, path: path}
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
func (s *Server) add(ss *session, b sessionfile.Body) *conversation.Node {
	n := ss.tree.Add(b)
	s.enter(ss, n)
	return n
}

// enter lets the file of the session have an entry. Server.mu is held.
func (s *Server) enter(ss *session, n *conversation.Node) {
	f := ss.file
	if f == nil {
		return
	}
	f.lines = append(f.lines, n.Line)
	if f.exists = f.exists || n.Role == conversation.RoleAssistant; f.exists && !f.busy {
		s.schedule(f)
	}
}

// writeFile brings to the disk what the file is to hold. What cannot be written stays,
// and is tried again with the next entry; a file that somebody has removed is made
// anew.
func (s *Server) writeFile(f *file) {
	f.disk.Lock()
	defer f.disk.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(f.lines) > 0 {
		lines := f.lines
		f.lines = nil
		s.mu.Unlock()
		err := f.at.append(f.made, lines)
		s.mu.Lock()
		if err == nil {
			f.made = true
			s.sayBroken(f, nil)
			continue
		}
		f.lines = append(lines, f.lines...)
		if f.made && errors.Is(err, fs.ErrNotExist) && s.remake(f) {
			continue
		}
		s.count("session_file.failed")
		s.sayBroken(f, err)
		break
	}
	if f.busy = false; f.users == 0 {
		if len(f.lines) > 0 {
			s.opts.Log.Warn("a session has ended whose file could not be written", "path", f.path, "lines", len(f.lines))
		}
		s.forget(f)
	}
}

// sayBroken tells operators and those who look at its sessions that the file cannot be
// written, or can again, where that is news.
func (s *Server) sayBroken(f *file, err error) {
	if f.broken == (err != nil) {
		return
	}
	f.broken = err != nil
	kind, text := render.NoticeInfo, "This conversation is written to its file again."
	if f.broken {
		s.opts.Log.Warn("a session file cannot be written; what it misses is kept in memory and tried again", "path", f.path, "error", err)
		kind, text = render.NoticeError, "This conversation cannot be written to its file ("+plainly(err).Error()+"). It is kept in memory, and tried again with what is said next."
	}
	for _, ss := range s.sessions {
		if ss.file == f {
			ss.tell(ss.envelope.Notice(time.Now(), kind, text))
		}
	}
}

// plainly is an error of the disk without the name of the call that failed, and the path.
func plainly(err error) error {
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

// remake has a file that is no longer there written anew, with all that its sessions
// know, the latest last. It reports false when it has none.
func (s *Server) remake(f *file) bool {
	var trees []*conversation.Tree
	for _, ss := range s.sessions {
		if ss.file == f && len(ss.tree.Nodes) > 0 {
			trees = append(trees, ss.tree)
		}
	}
	if len(trees) == 0 {
		return false
	}
	slices.SortFunc(trees, func(a, b *conversation.Tree) int {
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
	s.opts.Log.Warn("a session file is gone; it is made anew", "path", f.path)
	f.made, f.lines = false, lines
	return true
}

// writeRest brings to the disk what could not be written before: it is the last
// attempt. Nobody else may be at work on files.
func (s *Server) writeRest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files {
		if !f.exists || len(f.lines) == 0 {
			continue
		}
		s.mu.Unlock()
		s.writeFile(f)
		s.mu.Lock()
		if len(f.lines) > 0 {
			s.opts.Log.Error("the server ends, and a session file could not be written", "path", f.path, "lines", len(f.lines))
		}
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

// flushLeft brings to the disk what sessions left that are not in memory any more. It waits
// for the disk.
func (s *Server) flushLeft() {
	s.mu.Lock()
	var paths []string
	for path, f := range s.files {
		if f.users == 0 {
			paths = append(paths, path)
		}
	}
	s.mu.Unlock()
	for _, path := range paths {
		s.flush(path)
	}
}

// fileTime reads the time in the name of a session file.
func fileTime(name string) (time.Time, bool) {
	stamp, _, _ := strings.Cut(name, "_")
	at, err := time.Parse("2006-01-02T15-04-05-000Z", stamp)
	return at, err == nil
}
