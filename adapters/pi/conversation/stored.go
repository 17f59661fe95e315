package conversation

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"math"
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

// StoredInfo is StoredSessionInfo (section 20.1; facts, section 4.2). What is a
// placeholder in the reference is told truly here.
type StoredInfo struct {
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
	info StoredInfo
}

// List reads what the session files of a scope hold, those that were written
// last; one that has not changed since is not read again. It waits for the disk, and for who lists already.
func (s *Store) List(ctx context.Context, scope string) []StoredInfo {
	s.listing.Lock()
	defer s.listing.Unlock()
	s.flushReleased()
	before, now := s.summaries[scope], map[string]summary{}
	var list []StoredInfo
	for _, f := range s.findFiles(ctx, scope) {
		if ctx.Err() != nil || len(list) == listMost {
			break
		}
		path := f.at.Path()
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

// foundFile is a file that may be a session by its name.
type foundFile struct {
	at   Place
	info fs.FileInfo
}

// findFiles returns the files below the roots of a scope, each once, the latest first.
func (s *Store) findFiles(ctx context.Context, scope string) []foundFile {
	var all []foundFile
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
				all = append(all, foundFile{Place{root, name}, info})
			}
			return nil
		})
	}
	slices.SortStableFunc(all, func(a, b foundFile) int { return b.info.ModTime().Compare(a.info.ModTime()) })
	return all
}

// summarize reads a file for the list; one that is no session is not listed, and of one
// that is too large its header is all that is told.
func (s *Store) summarize(f foundFile) (summary, bool) {
	parsed, err := s.readFile(f.at)
	if errors.Is(err, errTooLarge) {
		parsed.Header, err = readHeader(f.at)
	}
	if err != nil {
		return summary{}, false
	}
	known := summary{size: f.info.Size(), at: f.info.ModTime(), info: StoredInfoOf(f.at.Path(), FromFileWith(parsed, inBrief))}
	known.info.FileExists = true
	if known.info.CreatedAt == "" {
		known.info.CreatedAt = f.info.ModTime().UTC().Format(sessionfile.Time)
	}
	return known, true
}

// inBrief reads of an entry what it takes to count the messages: most of a file are
// their words, which a list does not tell.
func inBrief(e sessionfile.Entry) Message {
	if e.Type == sessionfile.TypeMessage {
		return Message{Role: e.Type}
	}
	return MessageOf(e)
}

// StoredInfoOf is what a list says of a conversation in a file.
func StoredInfoOf(path string, t *Tree) StoredInfo {
	created := t.Header.Timestamp
	if _, err := time.Parse(time.RFC3339, created); err != nil {
		created = ""
		if at, ok := fileTime(filepath.Base(path)); ok {
			created = at.Format(sessionfile.Time)
		}
	}
	return StoredInfo{
		SessionID: StoredID(path, t.Header), SessionName: t.Name, SessionFile: path, SessionPath: path,
		Cwd: cmp.Or(t.Header.Cwd, "/unknown"), CreatedAt: created,
		ThinkingLevel: t.ThinkingLevel(), MessageCount: len(t.Context),
	}
}

// StoredID is the id of a session that is in a file alone.
func StoredID(path string, h sessionfile.Header) string {
	name := filepath.Base(path)
	return cmp.Or(h.SessionID, strings.TrimSuffix(name, filepath.Ext(name)))
}

// headBytes is how much of a file is looked at to tell whether it is a session.
const headBytes = 64 << 10

// Stored is a conversation that was read from a file.
type Stored struct {
	Tree *Tree
	At   Place
}

// Read reads the session file of a path. It returns why it cannot, or "". It
// reads the disk.
func (s *Store) Read(scope, path string) (Stored, string) {
	at, problem := s.locate(scope, path)
	if problem != "" {
		return Stored{}, problem
	}
	s.flush(at.Path())
	if _, err := readHeader(at); err != nil {
		return Stored{}, NotASession
	}
	f, err := s.readFile(at)
	if err != nil {
		s.opts.Log.Warn("a session file cannot be loaded", "path", path, "error", err, "session_bytes", s.opts.MaxBytes)
		return Stored{}, cannotBeRead + path
	}
	if f.Skipped > 0 {
		s.opts.Log.Warn("a session file has lines that are no entries; they are passed over", "path", path, "lines", f.Skipped)
	}
	return Stored{Tree: FromFile(f), At: at}, ""
}

// readHeader reads the first line of a session file.
func readHeader(at Place) (sessionfile.Header, error) {
	head, err := at.read(headBytes, math.MaxInt64)
	if err != nil {
		return sessionfile.Header{}, err
	}
	return sessionfile.ParseHeader(head)
}

// readFile reads a session file that is not too large.
func (s *Store) readFile(at Place) (sessionfile.File, error) {
	data, err := at.read(s.opts.MaxBytes, s.opts.MaxBytes)
	if err != nil {
		return sessionfile.File{}, err
	}
	return sessionfile.Parse(data)
}
