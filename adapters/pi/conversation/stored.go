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
	listDepth = 4      // of files below a root
	maxListed = 10_000 // files
)

// StoredInfo is StoredSessionInfo (section 20.1; facts, section 4.2). Members that are
// placeholders in the reference have their values here.
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

// summary is the content of a file as of a size and a time.
type summary struct {
	size int64
	at   time.Time
	info StoredInfo
}

// List returns the session files of a scope, the latest first; a file that has not changed
// is not read again. It waits for the disk, and for other calls.
func (s *Store) List(ctx context.Context, scope string) []StoredInfo {
	s.listing.Lock()
	defer s.listing.Unlock()
	s.flushReleased()
	var list []StoredInfo
	for _, f := range s.findFiles(ctx, scope) {
		if ctx.Err() != nil || len(list) == maxListed {
			break
		}
		path := f.at.Path()
		known, ok := s.summaries.Get(path)
		if !ok || known.size != f.info.Size() || !known.at.Equal(f.info.ModTime()) {
			if known, ok = s.summarize(f); !ok {
				continue
			}
		}
		s.summaries.Put(path, known)
		list = append(list, known.info)
	}
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
				return nil // unreadable directories are skipped
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

// summarize reads a file for the list. It reports false of a file that is no session; of one
// that is too large it reads only the header.
func (s *Store) summarize(f foundFile) (summary, bool) {
	parsed, err := s.readFile(f.at)
	if errors.Is(err, errTooLarge) {
		parsed.Header, err = readHeader(f.at)
	}
	if err != nil {
		return summary{}, false
	}
	known := summary{size: f.info.Size(), at: f.info.ModTime(), info: StoredInfoOf(f.at.Path(), FromFileWith(parsed, readRole))}
	known.info.FileExists = true
	if known.info.CreatedAt == "" {
		known.info.CreatedAt = f.info.ModTime().UTC().Format(sessionfile.Time)
	}
	return known, true
}

// readRole reads of an entry only what it takes to count the messages: most of a file is
// their text, which a list does not show.
func readRole(e sessionfile.Entry) Message {
	if e.Type == sessionfile.TypeMessage {
		return Message{Role: e.Type}
	}
	return MessageOf(e)
}

// StoredInfoOf describes a conversation in a file.
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

// StoredID returns the id of a session that is only in a file.
func StoredID(path string, h sessionfile.Header) string {
	name := filepath.Base(path)
	return cmp.Or(h.SessionID, strings.TrimSuffix(name, filepath.Ext(name)))
}

// headBytes is how much of a file is read to recognise a session.
const headBytes = 64 << 10

// Stored is a conversation that was read from a file.
type Stored struct {
	Tree *Tree
	At   Place
}

// Read reads the session file of a path, or returns why it cannot. It reads the disk.
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
		s.opts.Log.Warn("a session file has lines that are no entries; they are skipped", "path", path, "lines", f.Skipped)
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

// readFile reads a session file. It returns errTooLarge for one over MaxBytes.
func (s *Store) readFile(at Place) (sessionfile.File, error) {
	data, err := at.read(s.opts.MaxBytes, s.opts.MaxBytes)
	if err != nil {
		return sessionfile.File{}, err
	}
	return sessionfile.Parse(data)
}
