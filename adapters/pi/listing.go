package pi

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
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
	return s.work(x, func(ctx context.Context) outcome {
		for _, f := range s.storedFiles(ctx, scope) {
			if _, known := live[f.SessionFile]; !known {
				list = append(list, f)
			}
		}
		slices.SortStableFunc(list, func(a, b storedInfo) int {
			return cmp.Or(strings.Compare(b.CreatedAt, a.CreatedAt), strings.Compare(a.SessionID, b.SessionID))
		})
		return outcome{data: encode(map[string]any{"sessions": append([]storedInfo{}, list...)})}
	})
}

// storedFiles reads what the session files of a scope hold; one that has not changed
// since is not read again.
func (s *Server) storedFiles(ctx context.Context, scope string) []storedInfo {
	s.listing.Lock()
	defer s.listing.Unlock()
	before, now := s.summaries[scope], map[string]summary{}
	var list []storedInfo
	for _, root := range s.roots(scope) {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			name, _ := filepath.Rel(root, path)
			switch {
			case ctx.Err() != nil || len(list) >= listMost:
				return fs.SkipAll
			case err != nil:
				return nil // what cannot be read is not there
			case d.IsDir() && name != "." && (strings.Count(name, string(filepath.Separator)) >= listDepth-1 || scope == "" && strings.HasPrefix(name, privatePrefix)):
				return fs.SkipDir
			case !d.Type().IsRegular() || !isSessionName(path):
				return nil
			}
			info, err := d.Info()
			if _, twice := now[path]; err != nil || twice {
				return nil
			}
			known, ok := before[path]
			if !ok || known.size != info.Size() || !known.at.Equal(info.ModTime()) {
				if known, ok = s.summarize(place{root, name}, info); !ok {
					return nil
				}
			}
			now[path] = known
			list = append(list, known.info)
			return nil
		})
	}
	s.summaries[scope] = now
	return list
}

// summarize reads a file for the list; one that is no session is not listed.
func (s *Server) summarize(at place, info os.FileInfo) (summary, bool) {
	data, err := at.read(s.opts.MaxFileBytes, s.opts.MaxFileBytes)
	if err != nil {
		return summary{}, false
	}
	f, err := sessionfile.Parse(data)
	if err != nil {
		return summary{}, false
	}
	known := summary{size: info.Size(), at: info.ModTime(), info: storedInfoOf(at.path(), growTree(f))}
	known.info.FileExists = true
	if known.info.CreatedAt == "" {
		known.info.CreatedAt = info.ModTime().UTC().Format(isoTime)
	}
	return known, true
}

// storedInfoOf is what a list says of a conversation in a file.
func storedInfoOf(path string, t *tree) storedInfo {
	created := t.header.Timestamp
	if _, err := time.Parse(time.RFC3339, created); err != nil {
		created = ""
		if at, ok := fileTime(filepath.Base(path)); ok {
			created = at.Format(isoTime)
		}
	}
	return storedInfo{
		SessionID: storedID(path, t.header), SessionName: t.name, SessionFile: path, SessionPath: path,
		Cwd: cmp.Or(t.header.Cwd, "/unknown"), CreatedAt: created,
		ThinkingLevel: cmp.Or(t.level, thinkingOff), MessageCount: len(t.context),
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
	scope, cwd := x.client.scope, x.on.tree.header.Cwd
	return s.work(x, func(ctx context.Context) outcome {
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
		return outcome{data: encode(map[string]any{"files": files})}
	})
}
