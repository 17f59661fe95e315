package pi

import (
	"context"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
)

// newStore returns the store of the session files of s.
func (s *Server) newStore() *conversation.Store {
	return conversation.NewStore(conversation.StoreOptions{
		Dir: s.opts.SessionDir, Roots: s.opts.SessionRoots, ExportDirs: s.opts.ExportDirs, MaxBytes: s.opts.MaxFileBytes,
		Log: s.opts.Log, Count: s.count, Schedule: func(do func(context.Context)) { s.jobs.Add(do) }, Trees: s.treesOf, Broken: s.sayBroken,
	})
}

// beginTree gives the session a new conversation, and that a file.
func (ss *session) beginTree(t *conversation.Tree) {
	s := ss.server
	ss.file.Release()
	ss.tree, ss.file = t, s.store.Begin(ss.key.Scope, t)
}

// add adds an entry to the session's conversation and its file.
func (ss *session) add(b sessionfile.Body) *conversation.Node {
	n := ss.tree.AppendEntry(b)
	ss.file.Append(n)
	return n
}

// treesOf calls use with the conversations that a file has.
func (s *Server) treesOf(f *conversation.File, use func([]*conversation.Tree)) {
	s.engine.Lock()
	defer s.engine.Unlock()
	var trees []*conversation.Tree
	for _, ss := range s.sessions {
		if ss.file == f {
			trees = append(trees, ss.tree)
		}
	}
	use(trees)
}

// sayBroken tells those who subscribed to its sessions that a file cannot be written, or
// can again.
func (s *Server) sayBroken(f *conversation.File, err error) {
	kind, text := render.NoticeInfo, "This conversation is written to its file again."
	if err != nil {
		kind, text = render.NoticeError, "This conversation cannot be written to its file ("+conversation.PlainError(err).Error()+"). It is kept in memory, and tried again with what is said next."
	}
	s.engine.Lock()
	defer s.engine.Unlock()
	for _, ss := range s.sessions {
		if ss.file == f {
			ss.readers.tell(ss.envelope.Notice(time.Now(), kind, text))
		}
	}
}
