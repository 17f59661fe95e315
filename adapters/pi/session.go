package pi

import (
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// session is a conversation bound to an agent. It is touched in turns of the engine alone,
// and so is all that hangs on it: runs, steps, queues, subscribers.
type session struct {
	server   *Server
	key      command.Key
	envelope render.Envelope // of its events
	thread   core.ThreadID
	viewer   core.Principal    // whose the session is
	owner    command.Namespace // against whose limit it counts
	created  time.Time
	version  int
	deleted  bool
	// until is the number of the first command that is for another session of the name,
	// once this one was deleted.
	until uint64
	binding
	tree *conversation.Tree
	file *conversation.File // of the tree; nil when it is kept in memory alone
	run  *run               // nil when idle
	// noRetry says that what failed is not asked again.
	noRetry     bool
	summarizing *summaryRequest
	// compacting is what that is asked for, and noCompaction says that it is only when
	// a client wants it.
	compacting   *compaction
	noCompaction bool
	pause        pause // of what is compacted by itself
	// history is what was said before the thread began, and informed who of those that
	// remember a thread have heard it.
	history  []core.Turn
	informed map[core.AgentID]bool

	queue   queue
	readers subscribers
	dialogs dialogs
	upkeep
	membership
}

// upkeep is what governance knows of a session.
type upkeep struct {
	touched time.Time        // by the last command for it
	expiry  *time.Timer      // nil of one that lives for ever
	bash    *bashRun         // nil when none runs
	circuit *command.Circuit // of its bash; nil before the first
	untold  untoldBash
}

// newSession makes a session of who sent x that has no conversation yet.
func newSession(x *request, id string) *session {
	scope := x.client.Scope
	return &session{
		server: x.client.server, binding: binding{hub: x.client.server.hub}, key: command.Key{Scope: scope, ID: id}, envelope: render.NewEnvelope(id), thread: core.ThreadID(core.NewID()), created: time.Now(),
		owner: ownerOf(x.client), viewer: x.client.principal,
	}
}

// register lets the session be found.
func (s *Server) register(ss *session) {
	s.sessions[ss.key] = ss
	s.parked.Remove(ss.key)
	ss.startLifetime()
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

// zombieAfter is how long after its last command an idle session counts as
// forgotten (facts, section 4.5).
const zombieAfter = 5 * time.Minute

// startLifetime begins the lifetime of a session that was just made. [Server.unload]
// ends it.
func (ss *session) startLifetime() {
	s := ss.server
	ss.touched = time.Now()
	if s.opts.SessionLifetime > 0 {
		ss.expiry = time.AfterFunc(s.opts.SessionLifetime, func() { ss.retire() })
	}
}

// retire deletes a session whose time is over. One that is at work gets as long as
// that takes.
func (ss *session) retire() {
	s := ss.server
	s.engine.Lock()
	defer s.engine.Unlock()
	switch {
	case ss.deleted || s.engine.Stopped():
	case ss.busy():
		ss.expiry.Reset(time.Minute)
	default:
		s.expired++
		s.count("sessions.expired")
		ss.unload(s.engine.NextNumber())
		ss.sayDeleted()
	}
}

// busy reports whether something runs in the session.
func (ss *session) busy() bool { return ss.run != nil || ss.bash != nil || ss.summarizing != nil }

// unload takes a session out of the server. What runs in it was stopped before; commands
// from number until on are for another session of its name.
func (ss *session) unload(until uint64) {
	s := ss.server
	ss.deleted, ss.until = true, until
	delete(s.sessions, ss.key)
	ss.file.Release()
	ss.leaveThread()
	if ss.expiry != nil {
		ss.expiry.Stop()
	}
	for _, c := range ss.readers {
		c.unsubscribe(ss)
	}
	ss.watchQuestions()
}

// closeSessions ends what the sessions of a server that ends still have running.
func (s *Server) closeSessions() {
	s.engine.Lock()
	defer s.engine.Unlock()
	for _, ss := range s.sessions {
		ss.bash.kill()
		if ss.expiry != nil {
			ss.expiry.Stop()
		}
	}
}

// sayDeleted tells everybody whom it concerns that a session is no more.
func (ss *session) sayDeleted() {
	s := ss.server
	s.happened("session_deleted")
	s.broadcast(ss.key.Scope, render.ServerEvent("session_deleted", wire.Encode(map[string]string{"sessionId": ss.key.ID})))
}
