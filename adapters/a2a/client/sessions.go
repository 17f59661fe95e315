package client

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/lru"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// maxThreads is how many threads are remembered.
const maxThreads = 10_000

// session is what the remote keeps of a thread.
type session struct {
	// Context is the id that the remote gave the conversation.
	Context string `json:"context"`
	// Task is the last task, which the next message refers to.
	Task string `json:"task,omitempty"`
	// Open is what the next message, the answer that the task waits for, goes on with; nil if
	// the task has ended.
	Open *open `json:"open,omitempty"`
}

// open is a task that waits for an answer: what it asked and what it has said, which the next
// turn does not tell again.
type open struct {
	Asked string          `json:"asked"`
	Told  map[string]seen `json:"told,omitempty"`
}

// sessions are the sessions of threads. It is safe for concurrent use.
type sessions struct {
	url string
	log core.RecordLog

	mu       sync.Mutex
	loaded   bool
	byThread *lru.Cache[core.ThreadID, session]
}

// record is a session in a [core.RecordLog]: the last one of a thread counts.
type record struct {
	// URL is that of the settings: contexts of another agent are of no use.
	URL    string        `json:"url"`
	Thread core.ThreadID `json:"thread"`
	session
}

func (s *sessions) init(opts Options) {
	s.url, s.log = opts.URL, opts.Sessions
	s.byThread = lru.New(lru.Options[core.ThreadID, session]{Count: maxThreads})
}

// load reads the log, once.
func (s *sessions) load(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.log == nil || s.loaded {
		return nil
	}
	err := s.log.Replay(ctx, func(_ time.Time, raw []byte) bool {
		var r record
		if strictjson.Decode(raw, strictjson.Limits{}, &r) == nil && r.URL == s.url {
			s.byThread.Put(r.Thread, r.session)
		}
		return true
	})
	s.loaded = err == nil
	return err
}

// of returns the session of a thread; the zero session if there is none.
func (s *sessions) of(thread core.ThreadID) session {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, _ := s.byThread.Get(thread)
	return found
}

// set remembers the session of a thread, and reports whether it has to be recorded: a task
// that only the next message would refer to has not.
func (s *sessions) set(thread core.ThreadID, now session) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, _ := s.byThread.Get(thread)
	s.byThread.Put(thread, now)
	return s.log != nil && (before.Context != now.Context || before.Open != nil || now.Open != nil)
}

// record writes the session of a thread to the log. It waits for the disk.
func (s *sessions) record(ctx context.Context, thread core.ThreadID) error {
	raw, err := json.Marshal(record{s.url, thread, s.of(thread)})
	if err != nil {
		return err
	}
	return s.log.Append(ctx, raw)
}
