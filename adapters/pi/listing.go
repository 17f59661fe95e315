package pi

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
)

const (
	// listDepth is how deep below a root files are looked for.
	listDepth = 4
	// listMost is how many files a list has at most.
	listMost = 10_000
)

// storedInfo is StoredSessionInfo (section 20.1; facts, section 4.2). What is a
// placeholder in the reference is told truly here.
type storedInfo struct {
	SessionID     string `json:"sessionId"`
	SessionName   string `json:"sessionName,omitempty"`
	SessionFile   string `json:"sessionFile"`
	SessionPath   string `json:"sessionPath"`
	Cwd           string `json:"cwd"`
	CreatedAt     string `json:"createdAt"`
	ThinkingLevel string `json:"thinkingLevel"`
	IsStreaming   bool   `json:"isStreaming"`
	MessageCount  int    `json:"messageCount"`
	FileExists    bool   `json:"fileExists"`
}

// summary is what a file was found to hold when it had a size and a time.
type summary struct {
	size int64
	at   time.Time
	info storedInfo
}

// listStored lists the live sessions that have a file, or will have one, and the
// files of all others (section 20.1).
func listStored(s *Server, x *execution) outcome {
	scope := x.client.scope
	live := map[string]storedInfo{}
	var list []storedInfo
	for key, ss := range s.sessions {
		if key.scope != scope || ss.file == nil {
			continue
		}
		info := storedInfoOf(ss.file.path, ss.tree)
		info.SessionID, info.IsStreaming, info.FileExists = key.id, ss.run != nil, ss.file.made
		live[ss.file.path] = info
		list = append(list, info)
	}
	return s.workOf(&s.lists, x, func(ctx context.Context) outcome {
		for _, f := range s.storedFiles(ctx, scope) {
			if _, known := live[f.SessionFile]; !known {
				list = append(list, f)
			}
		}
		slices.SortStableFunc(list, func(a, b storedInfo) int {
			return cmp.Or(strings.Compare(b.CreatedAt, a.CreatedAt), strings.Compare(a.SessionID, b.SessionID))
		})
		return outcome{data: wire.Encode(map[string]any{"sessions": append([]storedInfo{}, list...)})}
	})
}

// storedFiles reads what the session files of a scope hold, those that were written
// last; one that has not changed since is not read again. One caller at a time.
func (s *Server) storedFiles(ctx context.Context, scope string) []storedInfo {
	s.flushLeft()
	before, now := s.summaries[scope], map[string]summary{}
	var list []storedInfo
	for _, f := range s.findFiles(ctx, scope) {
		if ctx.Err() != nil || len(list) == listMost {
			break
		}
		path := f.at.path()
		known, ok := before[path]
		if !ok || known.size != f.info.Size() || !known.at.Equal(f.info.ModTime()) {
			if known, ok = s.summarize(f); !ok {
				continue
			}
		}
		now[path] = known
		list = append(list, known.info)
	}
	s.summaries[scope] = now
	return list
}

// sighted is a file that may be a session by its name.
type sighted struct {
	at   place
	info fs.FileInfo
}

// findFiles returns the files below the roots of a scope, each once, the latest first.
func (s *Server) findFiles(ctx context.Context, scope string) []sighted {
	var all []sighted
	seen := map[string]bool{}
	for _, root := range s.roots(scope) {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			name, _ := filepath.Rel(root, path)
			switch {
			case ctx.Err() != nil:
				return fs.SkipAll
			case err != nil:
				return nil // what cannot be read is not there
			case d.IsDir() && name != "." && (strings.Count(name, string(filepath.Separator)) >= listDepth-1 || scope == "" && s.private(path)):
				return fs.SkipDir
			case !d.Type().IsRegular() || !isSessionName(path) || seen[path]:
				return nil
			}
			if info, err := d.Info(); err == nil {
				seen[path] = true
				all = append(all, sighted{place{root, name}, info})
			}
			return nil
		})
	}
	slices.SortStableFunc(all, func(a, b sighted) int { return b.info.ModTime().Compare(a.info.ModTime()) })
	return all
}

// summarize reads a file for the list; one that is no session is not listed, and of one
// that is too large its header is all that is told.
func (s *Server) summarize(f sighted) (summary, bool) {
	parsed, err := s.readFile(f.at)
	if errors.Is(err, errTooLarge) {
		parsed.Header, err = readHeader(f.at)
	}
	if err != nil {
		return summary{}, false
	}
	known := summary{size: f.info.Size(), at: f.info.ModTime(), info: storedInfoOf(f.at.path(), conversation.FromFileWith(parsed, inBrief))}
	known.info.FileExists = true
	if known.info.CreatedAt == "" {
		known.info.CreatedAt = f.info.ModTime().UTC().Format(isoTime)
	}
	return known, true
}

// inBrief reads of an entry what it takes to count the messages: most of a file are
// their words, which a list does not tell.
func inBrief(e sessionfile.Entry) conversation.Message {
	if e.Type == sessionfile.TypeMessage {
		return conversation.Message{Role: e.Type}
	}
	return conversation.MessageOf(e)
}

// storedInfoOf is what a list says of a conversation in a file.
func storedInfoOf(path string, t *conversation.Tree) storedInfo {
	created := t.Header.Timestamp
	if _, err := time.Parse(time.RFC3339, created); err != nil {
		created = ""
		if at, ok := fileTime(filepath.Base(path)); ok {
			created = at.Format(isoTime)
		}
	}
	return storedInfo{
		SessionID: storedID(path, t.Header), SessionName: t.Name, SessionFile: path, SessionPath: path,
		Cwd: cmp.Or(t.Header.Cwd, "/unknown"), CreatedAt: created,
		ThinkingLevel: cmp.Or(t.Level, thinkingOff), MessageCount: len(t.Context),
	}
}

// storedID is the id of a session that is in a file alone.
func storedID(path string, h sessionfile.Header) string {
	name := filepath.Base(path)
	return cmp.Or(h.SessionID, strings.TrimSuffix(name, filepath.Ext(name)))
}

// sessionFile is one row of list_session_files.
type sessionFile struct {
	Path       string `json:"path"`
	Name       string `json:"name"`
	ModifiedAt string `json:"modifiedAt"`
}

// listFiles lists the session files that belong to the directory of the session,
// those that were written last first (facts, section 3.5).
func listFiles(s *Server, x *execution) outcome {
	scope, cwd := x.client.scope, x.on.tree.Header.Cwd
	return s.workOf(&s.lists, x, func(ctx context.Context) outcome {
		files := []sessionFile{}
		for _, f := range s.storedFiles(ctx, scope) {
			if f.Cwd != cwd {
				continue
			}
			if info, err := os.Stat(f.SessionFile); err == nil {
				name := cmp.Or(f.SessionName, filepath.Base(f.SessionFile))
				files = append(files, sessionFile{f.SessionFile, name, info.ModTime().UTC().Format(isoTime)})
			}
		}
		slices.SortStableFunc(files, func(a, b sessionFile) int { return strings.Compare(b.ModifiedAt, a.ModifiedAt) })
		return outcome{data: wire.Encode(map[string]any{"files": files})}
	})
}
