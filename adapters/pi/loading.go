package pi

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// loadSession brings a conversation back from its file (section 20.2). Nobody else is
// told of the session (facts, section 2.1).
func loadSession(s *Server, x *request) command.Outcome {
	if ss := x.find(); ss != nil {
		return x.haveAlready(ss)
	}
	path, _ := x.Text("sessionPath")
	return x.Work(s.jobs, func(context.Context) command.Outcome {
		from, problem := s.store.Read(x.client.Scope, path)
		if problem != "" {
			return command.Failed(problem)
		}
		s.engine.Lock()
		defer s.engine.Unlock()
		id := x.Session
		if id == "" {
			id = s.idOf(x.client.Scope, from)
		}
		if problem := x.checkSession(id); problem != "" {
			return command.Failed(problem)
		}
		ss := newSession(x, id)
		s.register(ss)
		ss.load(from)
		return x.opened(ss)
	})
}

// idOf is the id of a session that is loaded without one: that under which it is
// listed, else, when that is taken, a new one.
func (s *Server) idOf(scope string, from conversation.Stored) string {
	id := conversation.StoredID(from.At.Path(), from.Tree.Header)
	if _, taken := s.sessions[command.Key{Scope: scope, ID: id}]; taken || !sessionIDs.MatchString(id) || command.Units(id) > command.MaxID {
		return newSessionID()
	}
	return id
}

// load gives the session a conversation from a file, and the agent with which it was had
// last.
func (ss *session) load(from conversation.Stored) {
	s := ss.server
	ss.file.Release()
	ss.tree, ss.file = from.Tree, s.store.Open(from)
	ss.bindToLast()
	ss.newThread(core.ThreadID(core.NewID()), ss.tree.Messages()) // others may have loaded it as well
}

// listStored lists the live sessions that have a file, or will have one, and the
// files of all others (section 20.1).
func listStored(s *Server, x *request) command.Outcome {
	scope := x.client.Scope
	live := map[string]conversation.StoredInfo{}
	var list []conversation.StoredInfo
	for key, ss := range s.sessions {
		if key.Scope != scope || ss.file == nil {
			continue
		}
		info := conversation.StoredInfoOf(ss.file.Path(), ss.tree)
		info.SessionID, info.IsStreaming, info.FileExists = key.ID, ss.run != nil, ss.file.OnDisk()
		live[ss.file.Path()] = info
		list = append(list, info)
	}
	return x.Work(s.lists, func(ctx context.Context) command.Outcome {
		for _, f := range s.store.List(ctx, scope) {
			if _, known := live[f.SessionFile]; !known {
				list = append(list, f)
			}
		}
		slices.SortStableFunc(list, func(a, b conversation.StoredInfo) int {
			return cmp.Or(strings.Compare(b.CreatedAt, a.CreatedAt), strings.Compare(a.SessionID, b.SessionID))
		})
		return command.Outcome{Data: wire.Encode(map[string]any{"sessions": append([]conversation.StoredInfo{}, list...)})}
	})
}

// sessionFile is one row of list_session_files.
type sessionFile struct {
	Path       string `json:"path"`
	Name       string `json:"name"`
	ModifiedAt string `json:"modifiedAt"`
}

// listFiles lists the session files that belong to the directory of the session,
// those that were written last first (facts, section 3.5).
func listFiles(s *Server, x *request) command.Outcome {
	scope, cwd := x.client.Scope, x.on.tree.Header.Cwd
	return x.Work(s.lists, func(ctx context.Context) command.Outcome {
		files := []sessionFile{}
		for _, f := range s.store.List(ctx, scope) {
			if f.Cwd != cwd {
				continue
			}
			if info, err := os.Stat(f.SessionFile); err == nil {
				name := cmp.Or(f.SessionName, filepath.Base(f.SessionFile))
				files = append(files, sessionFile{f.SessionFile, name, info.ModTime().UTC().Format(sessionfile.Time)})
			}
		}
		slices.SortStableFunc(files, func(a, b sessionFile) int { return strings.Compare(b.ModifiedAt, a.ModifiedAt) })
		return command.Outcome{Data: wire.Encode(map[string]any{"files": files})}
	})
}
