package pi

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// session is a conversation bound to an agent. Server.mu guards it.
type session struct {
	key     sessionKey
	prefix  []byte // of its events
	thread  core.ThreadID
	name    string
	created time.Time
	version int
	deleted bool
	// agent is who is asked: zero until the first prompt has found somebody.
	agent    core.Address
	model    *model // of the agent, as it was last seen
	thinking string // the level that was set, or ""
	noRetry  bool
	messages []message
	run      *run // nil when idle

	steering, following []queued // to be said next, and after that
	readers             map[*connection]struct{}
	dialogs             dialogs
}

// queued is a user's message that waits for its turn.
type queued struct {
	text   string
	images []core.File
	from   core.Principal
}

// sessionInfo is SessionInfo (facts, section 4.1).
type sessionInfo struct {
	SessionID     string `json:"sessionId"`
	SessionName   string `json:"sessionName,omitempty"`
	Model         *model `json:"model,omitempty"`
	ThinkingLevel string `json:"thinkingLevel"`
	IsStreaming   bool   `json:"isStreaming"`
	MessageCount  int    `json:"messageCount"`
	CreatedAt     string `json:"createdAt"`
}

// isoTime is the form of times that JavaScript writes.
const isoTime = "2006-01-02T15:04:05.000Z"

func (s *Server) info(ss *session) sessionInfo {
	return sessionInfo{
		SessionID: ss.key.id, SessionName: ss.name, Model: s.modelOf(ss), ThinkingLevel: ss.thinkingLevel(), IsStreaming: ss.run != nil,
		MessageCount: ss.count(), CreatedAt: ss.created.UTC().Format(isoTime),
	}
}

// all returns the messages so far, those of the run included as far as they ended.
func (ss *session) all() []message {
	if ss.run == nil {
		return ss.messages
	}
	return slices.Concat(ss.messages, ss.run.messages, ss.run.last().record.messages)
}

func (ss *session) count() int {
	if ss.run == nil {
		return len(ss.messages)
	}
	return len(ss.messages) + len(ss.run.messages) + len(ss.run.last().record.messages)
}

func (s *Server) lookup(x *execution) *session {
	return s.sessions[sessionKey{x.client.scope, x.session}]
}

func notFound(id string) string { return "Session " + id + " not found" }

var sessionIDs = regexp.MustCompile(`^[a-zA-Z0-9_.-]+$`)

func createSession(s *Server, x *execution) outcome {
	id := x.session
	switch {
	case id == "":
		id = newSessionID()
	case !sessionIDs.MatchString(id):
		return failed("Session ID must contain only alphanumeric characters, underscores, dashes, and dots")
	case units(id) > maxID:
		return failed(fmt.Sprintf("Session ID too long (max %d characters)", maxID))
	}
	key := sessionKey{x.client.scope, id}
	if s.sessions[key] != nil {
		return failed("Session " + id + " already exists")
	}
	if len(s.sessions) >= s.opts.MaxSessions {
		return failed(fmt.Sprintf("Session limit reached (%d sessions)", s.opts.MaxSessions))
	}
	if cwd, ok := x.text("cwd"); ok {
		if problem := checkDirectory(cwd); problem != "" {
			return failed(problem)
		}
	}
	text, _ := x.text("agent")
	to, err := core.ParseAddress(text)
	if err != nil {
		return failed(core.AsFault(err).Message)
	}
	ss := &session{key: key, prefix: sessionEvents(id), thread: core.ThreadID(core.NewID()), created: time.Now(), agent: to, readers: map[*connection]struct{}{}}
	s.sessions[key] = ss
	x.on = ss
	data := encode(map[string]any{"sessionId": id, "sessionInfo": s.info(ss)})
	return outcome{data: data, after: func() {
		s.broadcast(key.scope, append(append([]byte(`{"type":"session_created","data":`), data...), '}'))
	}}
}

// newSessionID makes the id of a session that its client did not name.
func newSessionID() string {
	return fmt.Sprintf("session-%s-%08x", strconv.FormatInt(time.Now().UnixMilli(), 36), rand.Uint32())
}

func deleteSession(s *Server, x *execution) outcome {
	ss := s.lookup(x)
	if ss == nil {
		return failed(notFound(x.session))
	}
	if ss.run != nil {
		s.stop(x, ss, "the session was deleted")
	}
	ss.deleted = true
	delete(s.sessions, ss.key)
	for c := range ss.readers {
		c.unsubscribe(ss)
	}
	s.look(ss)
	return outcome{data: encode(map[string]bool{"deleted": true}), after: func() {
		s.broadcast(ss.key.scope, serverEvent("session_deleted", map[string]string{"sessionId": ss.key.id}))
	}}
}

// switchSession subscribes the connection; a run that is under way is told from its
// beginning.
func switchSession(s *Server, x *execution) outcome {
	ss := s.lookup(x)
	if ss == nil {
		return failed(notFound(x.session))
	}
	x.on = ss
	return outcome{data: encode(map[string]any{"sessionInfo": s.info(ss)}), after: func() { x.client.subscribe(ss) }}
}

func listSessions(s *Server, x *execution) outcome {
	list := []sessionInfo{}
	for key, ss := range s.sessions {
		if key.scope == x.client.scope {
			list = append(list, s.info(ss))
		}
	}
	slices.SortFunc(list, func(a, b sessionInfo) int { return strings.Compare(a.SessionID, b.SessionID) })
	return outcome{data: encode(map[string]any{"sessions": list})}
}

func setName(_ *Server, x *execution) outcome {
	x.on.name, _ = x.text("name")
	return outcome{}
}
