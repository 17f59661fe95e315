package pirpc

import (
	"context"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/lru"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// maxThreads bounds the threads whose session is remembered.
const maxThreads = 10_000

// session is what is known of the session of a thread. It is a record of [Options.Sessions].
type session struct {
	Agent  core.AgentID  `json:"agent,omitempty"`
	Thread core.ThreadID `json:"thread"`
	// File is the session file of pi; "" if pi keeps none.
	File string `json:"file,omitempty"`
	// Last is the latest task of the thread that pi worked on.
	Last core.TaskID `json:"last,omitempty"`
}

// sessions remember the session of each thread. They are safe for concurrent use.
type sessions struct {
	agent core.AgentID
	log   core.RecordLog // nil for memory alone

	mu     sync.Mutex
	loaded bool
	known  *lru.Cache[core.ThreadID, session]
}

func newSessions(agent core.AgentID, log core.RecordLog) *sessions {
	return &sessions{agent: agent, log: log, known: lru.New(lru.Options[core.ThreadID, session]{Count: maxThreads})}
}

// load reads the log, once. A record that it does not understand is left out.
func (s *sessions) load(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loaded || s.log == nil {
		return nil
	}
	err := s.log.Replay(ctx, func(_ time.Time, record []byte) bool {
		var of session
		if strictjson.Decode(record, strictjson.Limits{}, &of) == nil && of.Agent == s.agent && of.Thread != "" {
			s.known.Put(of.Thread, of)
		}
		return true
	})
	s.loaded = err == nil
	return err
}

// of returns the session of a thread; one without a file if there is none.
func (s *sessions) of(thread core.ThreadID) session {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, _ := s.known.Get(thread)
	known.Agent, known.Thread = s.agent, thread
	return known
}

// put remembers the session of a thread.
func (s *sessions) put(ctx context.Context, of session) error {
	of.Agent = s.agent
	s.mu.Lock()
	before, _ := s.known.Get(of.Thread)
	s.known.Put(of.Thread, of)
	s.mu.Unlock()
	if s.log == nil || of.File == "" || before == of {
		return nil // without a file nothing can be continued after a restart
	}
	return s.log.Append(ctx, []byte(object(of)))
}
