package pi

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// newStore returns the store of the session files of s.
func (s *Server) newStore() *conversation.Store {
	return conversation.NewStore(conversation.StoreOptions{
		Dir: s.opts.SessionDir, Roots: s.opts.SessionRoots, ExportDirs: s.opts.ExportDirs, MaxBytes: s.opts.MaxFileBytes,
		Log: s.opts.Log, Count: s.count, Schedule: func(do func(context.Context)) { s.jobs.Add(do) }, Trees: s.treesOf, Broken: s.notifyBroken,
	})
}

// beginTree gives the session a new conversation, with a file.
func (ss *session) beginTree(t *conversation.Tree) {
	s := ss.server
	ss.file.Release()
	ss.tree, ss.file = t, s.store.Begin(ss.key.Scope, t)
}

// addEntry adds an entry to the session's conversation and its file.
func (ss *session) addEntry(b sessionfile.Body) *conversation.Node {
	n := ss.tree.AppendEntry(b)
	ss.file.Append(n)
	return n
}

// treesOf calls use with the conversations of a file.
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

// notifyBroken tells the subscribers of its sessions that a file cannot be written, or can be
// written again.
func (s *Server) notifyBroken(f *conversation.File, err error) {
	kind, text := render.NoticeInfo, "This conversation is written to its file again."
	if err != nil {
		kind, text = render.NoticeError, "This conversation cannot be written to its file ("+conversation.PlainError(err).Error()+"). It is kept in memory, and tried again with what is said next."
	}
	s.engine.Lock()
	defer s.engine.Unlock()
	for _, ss := range s.sessions {
		if ss.file == f {
			ss.subscribers.send(ss.envelope.Notice(time.Now(), kind, text))
		}
	}
}

// listStored lists the live sessions that have or will have a file, and the other files
// (section 20.1).
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
		return command.Outcome{Data: strictjson.Encode(map[string]any{"sessions": append([]conversation.StoredInfo{}, list...)})}
	})
}

// sessionFile is one row of list_session_files.
type sessionFile struct {
	Path       string `json:"path"`
	Name       string `json:"name"`
	ModifiedAt string `json:"modifiedAt"`
}

// listFiles lists the session files of the session's directory, the latest first (facts,
// section 3.5).
func listFiles(s *Server, x *request) command.Outcome {
	scope, cwd := x.client.Scope, x.target.tree.Header.Cwd
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
		return command.Outcome{Data: strictjson.Encode(map[string]any{"files": files})}
	})
}

// exportHTML writes the conversation to a file, as one page of HTML.
func exportHTML(s *Server, x *request) command.Outcome {
	ss := x.target
	if len(ss.tree.Context) == 0 {
		return command.Failed("Nothing to export yet - start a conversation first")
	}
	requested, _ := x.Text("outputPath")
	title, path, nodes, header := ss.tree.Name, ss.file.Path(), ss.tree.Path(), ss.tree.Header
	if title == "" {
		title = ss.key.ID
	}
	return x.Work(s.jobs, func(context.Context) command.Outcome {
		to, err := exportPath(s.store, x.client.Scope, requested, header.Cwd, path, ss.key.ID)
		if err != nil {
			return command.Failed(err.Error())
		}
		page := render.Page{Title: title, Cwd: header.Cwd, Began: header.Timestamp, Path: nodes}.HTML()
		switch err := to.Replace(page, render.PageMark); {
		case errors.Is(err, conversation.ErrTaken):
			return command.Failed("Failed to export session: " + err.Error())
		case err != nil:
			return command.Failed("Failed to export session: " + to.Path() + " cannot be written (" + conversation.PlainError(err).Error() + ")")
		}
		return command.Outcome{Data: strictjson.Encode(map[string]string{"path": to.Path()})}
	})
}

var (
	errExportName  = errors.New("outputPath must point to a .html file")
	errExportPlace = errors.New("outputPath must be under an allowed directory for this server (its working directory or that of its sessions)")
)

// exportPath returns where the page is written. A requested path is relative to the session's
// directory. Without one the page is written there if that is allowed, else beside the
// session's file. It reads the disk.
func exportPath(store *conversation.Store, scope, requested, cwd, file, id string) (conversation.Place, error) {
	if requested != "" {
		if !filepath.IsAbs(requested) {
			requested = filepath.Join(cwd, requested)
		}
		return exportTo(store, scope, requested)
	}
	name := id
	if file != "" {
		name = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	}
	name = "pi-session-" + name + ".html"
	to, err := exportTo(store, scope, filepath.Join(cwd, name))
	if err != nil && file != "" {
		to, err = exportTo(store, scope, filepath.Join(filepath.Dir(file), name))
	}
	return to, err
}

func exportTo(store *conversation.Store, scope, path string) (conversation.Place, error) {
	if filepath.Ext(path) != ".html" || strings.Contains(path, "\x00") {
		return conversation.Place{}, errExportName
	}
	to, ok := store.ExportPlace(scope, path)
	if !ok {
		return to, errExportPlace
	}
	return to, nil
}
