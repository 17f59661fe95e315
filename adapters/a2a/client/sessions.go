package client

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/lru"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// maxSessions is how many sessions are remembered.
const maxSessions = 10_000

// session is what the remote keeps of a conversation.
type session struct {
	// Context is the id that the remote gave the conversation.
	Context string `json:"context"`
	// Task is the last task, which the next message refers to.
	Task string `json:"task,omitempty"`
	// Heard is what the remote was told of the thread. A record may be older: then the remote
	// is told some of it again.
	Heard *heard `json:"heard,omitempty"`
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

// sessions are the sessions of conversations. It is safe for concurrent use.
type sessions struct {
	agent, url string
	log        core.RecordLog

	mu     sync.Mutex
	loaded bool
	by     *lru.Cache[agent.Conversation, session]
}

// record is a session in a [core.RecordLog]: the last one of a conversation counts.
type record struct {
	// Agent and URL are those of the settings: two agents with one URL may have different
	// tokens, and contexts of another remote are of no use.
	Agent string `json:"agent"`
	URL   string `json:"url"`
	agent.Conversation
	session
}

func (s *sessions) init(opts Options) {
	s.agent, s.url, s.log = opts.Name, opts.URL, opts.Sessions
	s.by = lru.New(lru.Options[agent.Conversation, session]{Count: maxSessions})
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
		if strictjson.Decode(raw, strictjson.Limits{}, &r) == nil && r.Agent == s.agent && r.URL == s.url {
			s.by.Put(r.Conversation, r.session)
		}
		return true
	})
	s.loaded = err == nil
	return err
}

// of returns the session of a conversation; the zero session if there is none.
func (s *sessions) of(in agent.Conversation) session {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, _ := s.by.Get(in)
	return found
}

// set remembers the session of a conversation, and reports whether it has to be recorded: a task
// that only the next message would refer to has not.
func (s *sessions) set(in agent.Conversation, now session) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, _ := s.by.Get(in)
	s.by.Put(in, now)
	return s.log != nil && (before.Context != now.Context || before.Open != nil || now.Open != nil)
}

// record writes the session of a conversation to the log. It waits for the disk.
func (s *sessions) record(ctx context.Context, in agent.Conversation) error {
	raw, err := json.Marshal(record{s.agent, s.url, in, s.of(in)})
	if err != nil {
		return err
	}
	return s.log.Append(ctx, raw)
}
