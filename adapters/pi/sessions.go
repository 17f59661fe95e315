package pi

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

func notFound(id string) string { return "Session " + id + " not found" }

func exists(id string) string { return "Session " + id + " already exists" }

var sessionIDs = regexp.MustCompile(`^[a-zA-Z0-9_.-]+$`)

func createSession(s *Server, x *request) command.Outcome {
	if ss := x.find(); ss != nil {
		return x.existing(ss)
	}
	cwd, named := x.Text("cwd")
	if !named {
		return x.create(s.opts.Dir, "")
	}
	return x.Work(s.jobs, func(context.Context) command.Outcome {
		problem := checkDirectory(cwd)
		s.engine.Lock()
		defer s.engine.Unlock()
		return x.create(filepath.Clean(cwd), problem)
	})
}

// create makes a session in a directory. A problem with the directory fails the command.
func (x *request) create(cwd, problem string) command.Outcome {
	s := x.client.server
	id := x.Session
	if id == "" {
		id = newSessionID()
	}
	if problem := cmp.Or(x.checkSession(id), problem); problem != "" {
		return command.Failed(problem)
	}
	text, _ := x.Text("agent")
	to, err := core.ParseAddress(text)
	if err != nil {
		return command.Failed(core.AsFault(err).Message)
	}
	if strings.ContainsFunc(to.String(), unicode.IsSpace) && len(s.hub.Match(x.client.principal, to)) == 0 {
		return command.Failed("address " + string(strictjson.Encode(text)) + ": it has blanks, and nobody here answers for it; write an agent's id, capability:a,b, domain:a.b or *")
	}
	ss := newSession(x, id)
	ss.agent = to
	if thread, ok := x.Text("thread"); ok {
		ss.thread = core.ThreadID(thread)
		return x.joinThread(ss, cwd)
	}
	s.register(ss)
	ss.followThread()
	t := conversation.New(string(ss.thread), id, cwd, "")
	ss.recordAgent(t)
	ss.beginTree(t)
	return x.sessionCreated(ss)
}

// existing is the outcome of making a session that exists: a failure, unless x made it
// before a restart and is done again.
func (x *request) existing(ss *session) command.Outcome {
	if !x.IsRedo() {
		return command.Failed(exists(x.Session))
	}
	return x.sessionOpened(ss)
}

// checkSession returns why x cannot make a session with the id, or "".
func (x *request) checkSession(id string) string {
	s := x.client.server
	switch {
	case !sessionIDs.MatchString(id):
		return "Session ID must contain only alphanumeric characters, underscores, dashes, and dots"
	case command.Units(id) > command.MaxID:
		return fmt.Sprintf("Session ID too long (max %d characters)", command.MaxID)
	case s.sessions[command.Key{Scope: x.client.Scope, ID: id}] != nil:
		return exists(id)
	}
	return s.makeRoom(ownerOf(x.client))
}

// sessionCreated is the outcome of making a session, which is announced to all clients of
// its scope. Loading one is not announced (facts, section 2.1).
func (x *request) sessionCreated(ss *session) command.Outcome {
	s := x.client.server
	o := x.sessionOpened(ss)
	o.After = func() {
		s.recordEvent("session_created")
		s.broadcast(ss.key.Scope, render.ServerEvent("session_created", o.Data))
	}
	return o
}

// sessionOpened is the outcome of a command that made or loaded a session.
func (x *request) sessionOpened(ss *session) command.Outcome {
	x.forSession(ss)
	return command.Outcome{Data: strictjson.Encode(map[string]any{"sessionId": ss.key.ID, "sessionInfo": ss.info()})}
}

// newSessionID returns the id of a session that its client did not name.
func newSessionID() string {
	return fmt.Sprintf("session-%s-%08x", strconv.FormatInt(time.Now().UnixMilli(), 36), rand.Uint32())
}

// loadSession makes a session of the conversation in a file (section 20.2).
func loadSession(s *Server, x *request) command.Outcome {
	if ss := x.find(); ss != nil {
		return x.existing(ss)
	}
	path, _ := x.Text("sessionPath")
	return x.Work(s.jobs, func(context.Context) command.Outcome {
		from, problem := s.store.Read(x.client.Scope, path)
		if problem != "" {
			return command.Failed(problem)
		}
		s.engine.Lock()
		defer s.engine.Unlock()
		id := x.Session
		if id == "" {
			id = s.freeID(x.client.Scope, from)
		}
		if problem := x.checkSession(id); problem != "" {
			return command.Failed(problem)
		}
		ss := newSession(x, id)
		s.register(ss)
		ss.load(from)
		return x.sessionOpened(ss)
	})
}

// freeID returns the id of a session that is loaded without one: the id that it is listed
// with, or a new one when that is taken.
func (s *Server) freeID(scope string, from conversation.Stored) string {
	id := conversation.StoredID(from.At.Path(), from.Tree.Header)
	if _, taken := s.sessions[command.Key{Scope: scope, ID: id}]; taken || !sessionIDs.MatchString(id) || command.Units(id) > command.MaxID {
		return newSessionID()
	}
	return id
}

func deleteSession(s *Server, x *request) command.Outcome {
	ss := x.find()
	deleted := strictjson.Encode(map[string]bool{"deleted": true})
	if ss == nil {
		_, parked := s.parked.Remove(command.Key{Scope: x.client.Scope, ID: x.Session})
		if parked || x.IsRedo() {
			return command.Outcome{Data: deleted} // announced when it was parked
		}
		return command.Failed(notFound(x.Session))
	}
	if ss.run != nil && !ss.run.last().foreign {
		x.stop(ss, "the session was deleted")
	}
	x.stopSummary(ss, "the session was deleted")
	ss.bash.kill()
	ss.unload(x.Number())
	return command.Outcome{Data: deleted, After: func() {
		ss.announceDeleted()
		ss.stopFollowing()
	}}
}

// switchSession subscribes the connection. A run under way is sent from its beginning.
func switchSession(s *Server, x *request) command.Outcome {
	ss := x.find()
	if ss == nil {
		return command.Failed(notFound(x.Session))
	}
	x.forSession(ss)
	return command.Outcome{Data: strictjson.Encode(map[string]any{"sessionInfo": ss.info()}), After: func() { x.client.subscribe(ss) }}
}

func listSessions(s *Server, x *request) command.Outcome {
	list := []sessionInfo{}
	for key, ss := range s.sessions {
		if key.Scope == x.client.Scope {
			list = append(list, ss.info())
		}
	}
	slices.SortFunc(list, func(a, b sessionInfo) int { return strings.Compare(a.SessionID, b.SessionID) })
	return command.Outcome{Data: strictjson.Encode(map[string]any{"sessions": list})}
}

func setName(s *Server, x *request) command.Outcome {
	name, _ := x.Text("name")
	x.target.addEntry(sessionfile.Info{Name: strings.TrimSpace(name)})
	return command.Outcome{}
}

// checkDirectory returns why a session cannot have the working directory, or "". The
// rules are those of pi-server; agents do not run there. It reads the disk.
func checkDirectory(cwd string) string {
	switch {
	case strings.Contains(cwd, "\x00") || strings.HasPrefix(cwd, "~"):
		return "CWD contains potentially dangerous path components"
	case !filepath.IsAbs(cwd):
		return "CWD must be an absolute path"
	case command.Units(cwd) > command.MaxPath:
		return "CWD too long (max 4096 characters)"
	}
	info, err := os.Stat(cwd)
	if err != nil || !info.IsDir() {
		return "CWD must point to an existing directory"
	}
	return ""
}
