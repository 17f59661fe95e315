package pi

import (
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// session is a conversation bound to an agent. It, its runs, steps, queue and subscribers
// are accessed only in turns of the engine.
type session struct {
	server   *Server
	key      command.Key
	envelope render.Envelope // of its events
	thread   core.ThreadID
	owner    command.Namespace // whose limit it counts against
	created  time.Time
	version  int
	deleted  bool
	// successorFrom is set when the session is deleted: commands from this number on are for
	// another session of that name.
	successorFrom uint64
	binding
	tree *conversation.Tree
	file *conversation.File // of the tree; nil when it is kept in memory only
	run  *run               // nil when idle
	// noRetry turns automatic retries off, noCompaction automatic compactions.
	noRetry, noCompaction bool
	// summarizing is the summary that the agent is asked for, compacting the compaction that
	// it is for, if it is for one.
	summarizing *summaryRequest
	compacting  *compaction
	pause       pause // of automatic compactions
	// history is the conversation before the thread began. informedAgents are the agents that
	// remember threads and have been sent it.
	history        []core.Turn
	informedAgents map[core.AgentID]bool

	queue       queue
	subscribers subscribers
	dialogs     dialogs
	membership

	lastUsed    time.Time        // when its last command was admitted
	expiryTimer *time.Timer      // nil without a limit
	bash        *bashRun         // nil when none runs
	circuit     *command.Circuit // of its bash; nil before the first
	unreported  unreportedBash
}

// newSession returns a session without a conversation, owned by the client that sent x.
func newSession(x *request, id string) *session {
	scope := x.client.Scope
	return &session{
		server: x.client.server, binding: binding{hub: x.client.server.hub, viewer: x.client.principal}, key: command.Key{Scope: scope, ID: id}, envelope: render.NewEnvelope(id), thread: core.ThreadID(core.NewID()), created: time.Now(),
		owner: ownerOf(x.client),
	}
}

// register adds the session to the server and starts its lifetime.
func (s *Server) register(ss *session) {
	s.sessions[ss.key] = ss
	s.parked.Remove(ss.key)
	ss.lastUsed = time.Now()
	if s.opts.SessionLifetime > 0 {
		ss.expiryTimer = time.AfterFunc(s.opts.SessionLifetime, ss.expire)
	}
}

// sessionInfo is SessionInfo (facts, section 4.1).
type sessionInfo struct {
	SessionID     string `json:"sessionId"`
	SessionName   string `json:"sessionName,omitempty"`
	SessionFile   string `json:"sessionFile,omitempty"`
	Model         *model `json:"model,omitempty"`
	ThinkingLevel string `json:"thinkingLevel"`
	IsStreaming   bool   `json:"isStreaming"`
	MessageCount  int    `json:"messageCount"`
	CreatedAt     string `json:"createdAt"`
}

func (ss *session) info() sessionInfo {
	return sessionInfo{
		SessionID: ss.key.ID, SessionName: ss.tree.Name, SessionFile: ss.file.Path(), Model: ss.currentModel(), ThinkingLevel: ss.tree.ThinkingLevel(),
		IsStreaming: ss.run != nil, MessageCount: len(ss.tree.Context), CreatedAt: ss.created.UTC().Format(sessionfile.Time),
	}
}

// expire deletes a session at the end of its lifetime, a busy one once it is idle.
func (ss *session) expire() {
	s := ss.server
	s.engine.Lock()
	defer s.engine.Unlock()
	switch {
	case ss.deleted || s.engine.Stopped():
	case ss.busy():
		ss.expiryTimer.Reset(time.Minute)
	default:
		s.expired++
		s.count("sessions.expired")
		ss.unload(s.engine.NextNumber())
		ss.announceDeleted()
	}
}

// busy reports whether a run, a program or a summary is under way in the session.
func (ss *session) busy() bool { return ss.run != nil || ss.bash != nil || ss.summarizing != nil }

// unload removes a session from the server. The caller has stopped what runs in it.
// Commands from number successorFrom on are for another session of its name.
func (ss *session) unload(successorFrom uint64) {
	s := ss.server
	ss.deleted, ss.successorFrom = true, successorFrom
	delete(s.sessions, ss.key)
	ss.file.Release()
	ss.leaveThread()
	if ss.expiryTimer != nil {
		ss.expiryTimer.Stop()
	}
	for _, c := range ss.subscribers {
		c.unsubscribe(ss)
	}
	ss.watchQuestions()
}

// closeSessions stops the programs and the timers of all sessions.
func (s *Server) closeSessions() {
	s.engine.Lock()
	defer s.engine.Unlock()
	for _, ss := range s.sessions {
		ss.bash.kill()
		if ss.expiryTimer != nil {
			ss.expiryTimer.Stop()
		}
	}
}

// announceDeleted tells the clients of its scope that the session was deleted.
func (ss *session) announceDeleted() {
	s := ss.server
	s.recordEvent("session_deleted")
	s.broadcast(ss.key.Scope, render.ServerEvent("session_deleted", strictjson.Encode(map[string]string{"sessionId": ss.key.ID})))
}
