package pi

import (
	"context"
	"math"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
	"github.com/dragoman-hub/dragoman/core"
)

// headBytes is how much of a file is looked at to tell whether it is a session.
const headBytes = 64 << 10

// stored is a conversation that was read from a file.
type stored struct {
	tree *conversation.Tree
	at   place
}

// readStored reads the session file of a path. It returns why it cannot, or "". It
// reads the disk.
func (s *Server) readStored(scope, path string) (stored, string) {
	at, problem := s.locate(scope, path)
	if problem != "" {
		return stored{}, problem
	}
	s.flush(at.path())
	if _, err := readHeader(at); err != nil {
		return stored{}, notASession
	}
	f, err := s.readFile(at)
	if err != nil {
		s.opts.Log.Warn("a session file cannot be loaded", "path", path, "error", err, "session_bytes", s.opts.MaxFileBytes)
		return stored{}, cannotBeRead + path
	}
	if f.Skipped > 0 {
		s.opts.Log.Warn("a session file has lines that are no entries; they are passed over", "path", path, "lines", f.Skipped)
	}
	return stored{tree: conversation.FromFile(f), at: at}, ""
}

// readHeader reads the first line of a session file.
func readHeader(at place) (sessionfile.Header, error) {
	head, err := at.read(headBytes, math.MaxInt64)
	if err != nil {
		return sessionfile.Header{}, err
	}
	return sessionfile.ParseHeader(head)
}

// readFile reads a session file that is not too large.
func (s *Server) readFile(at place) (sessionfile.File, error) {
	data, err := at.read(s.opts.MaxFileBytes, s.opts.MaxFileBytes)
	if err != nil {
		return sessionfile.File{}, err
	}
	return sessionfile.Parse(data)
}

// loadSession brings a conversation back from its file (section 20.2). Nobody else is
// told of the session (facts, section 2.1).
func loadSession(s *Server, x *execution) outcome {
	if ss := s.lookup(x); ss != nil {
		return s.haveAlready(x, ss)
	}
	path, _ := x.text("sessionPath")
	return s.work(x, func(context.Context) outcome {
		from, problem := s.readStored(x.client.scope, path)
		if problem != "" {
			return failed(problem)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		id := x.session
		if id == "" {
			id = s.idOf(x.client.scope, from)
		}
		if problem := s.checkSession(x, id); problem != "" {
			return failed(problem)
		}
		ss := newSession(x, id)
		s.register(ss)
		s.take(ss, from)
		return s.opened(x, ss)
	})
}

// idOf is the id of a session that is loaded without one: that under which it is
// listed, else, when that is taken, a new one.
func (s *Server) idOf(scope string, from stored) string {
	id := storedID(from.at.path(), from.tree.Header)
	if _, taken := s.sessions[sessionKey{scope, id}]; taken || !sessionIDs.MatchString(id) || units(id) > maxID {
		return newSessionID()
	}
	return id
}

// take gives the session a conversation from a file, and the agent with which it was had
// last. Server.mu is held.
func (s *Server) take(ss *session, from stored) {
	s.letGo(ss.file)
	ss.tree, ss.file = from.tree, s.hold(from.at)
	ss.file.exists, ss.file.made = true, true
	s.goOnWith(ss)
	s.recall(ss, core.ThreadID(core.NewID())) // others may have loaded it as well
}
