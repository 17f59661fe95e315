package pirpc

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/lru"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// maxThreads bounds the conversations whose session is remembered.
const maxThreads = 10_000

// session is what is known of the session of a conversation. It is a record of [Options.Sessions].
type session struct {
	Agent core.AgentID `json:"agent,omitempty"`
	agent.Conversation
	// File is the session file of pi; "" if pi keeps none.
	File string `json:"file,omitempty"`
	// Last and Known are the turns of the conversation that the session has: see [agent.Known].
	Last  core.TaskID   `json:"last,omitempty"`
	Known []core.TaskID `json:"known,omitempty"`
}

// turns returns the turns of the conversation that the session has.
func (s session) turns() *agent.Known { return &agent.Known{Floor: s.Last, After: s.Known} }

// sessions remember the session of each conversation. They are safe for concurrent use.
type sessions struct {
	agent core.AgentID
	log   core.RecordLog // nil for memory alone

	mu     sync.Mutex
	loaded bool
	known  *lru.Cache[agent.Conversation, session]
}

func newSessions(id core.AgentID, log core.RecordLog) *sessions {
	return &sessions{agent: id, log: log, known: lru.New(lru.Options[agent.Conversation, session]{Count: maxThreads})}
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
			s.known.Put(of.Conversation, of)
		}
		return true
	})
	s.loaded = err == nil
	return err
}

// of returns the session of a conversation; one without a file if there is none.
func (s *sessions) of(c agent.Conversation) session {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, _ := s.known.Get(c)
	known.Agent, known.Conversation = s.agent, c
	return known
}

// put remembers the session of a conversation.
func (s *sessions) put(ctx context.Context, of session) error {
	of.Agent = s.agent
	s.mu.Lock()
	before, _ := s.known.Get(of.Conversation)
	s.known.Put(of.Conversation, of)
	s.mu.Unlock()
	if s.log == nil || of.File == "" || before.File == of.File && before.Last == of.Last && slices.Equal(before.Known, of.Known) {
		return nil // without a file nothing can be continued after a restart
	}
	return s.log.Append(ctx, strictjson.Encode(of))
}
