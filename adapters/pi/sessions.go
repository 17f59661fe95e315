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
	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
	"github.com/dragoman-hub/dragoman/core"
)

func notFound(id string) string { return "Session " + id + " not found" }

func exists(id string) string { return "Session " + id + " already exists" }

var sessionIDs = regexp.MustCompile(`^[a-zA-Z0-9_.-]+$`)

func createSession(s *Server, x *request) command.Outcome {
	if ss := x.find(); ss != nil {
		return x.haveAlready(ss)
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

// create makes a session in a directory, unless there is a problem with that.
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
	if strings.ContainsFunc(to.String(), unicode.IsSpace) && len(s.hub.Match(to)) == 0 {
		return command.Failed("address " + string(wire.Encode(text)) + ": it has blanks, and nobody here answers for it; write an agent's id, capability:a,b, domain:a.b or *")
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
	return x.created(ss)
}

// haveAlready is what comes of making a session that exists: it is what a command wants that
// made it before the start and is done again.
func (x *request) haveAlready(ss *session) command.Outcome {
	if !x.IsRedo() {
		return command.Failed(exists(x.Session))
	}
	return x.opened(ss)
}

// checkSession returns why x cannot make a session of the id, or "".
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

// created says that x has made the session, and tells everybody. That one was loaded is
// no event (facts, section 2.1).
func (x *request) created(ss *session) command.Outcome {
	s := x.client.server
	o := x.opened(ss)
	o.After = func() {
		s.happened("session_created")
		s.broadcast(ss.key.Scope, render.ServerEvent("session_created", o.Data))
	}
	return o
}

// opened says that x has a session now.
func (x *request) opened(ss *session) command.Outcome {
	x.forSession(ss)
	return command.Outcome{Data: wire.Encode(map[string]any{"sessionId": ss.key.ID, "sessionInfo": ss.info()})}
}

// newSessionID makes the id of a session that its client did not name.
func newSessionID() string {
	return fmt.Sprintf("session-%s-%08x", strconv.FormatInt(time.Now().UnixMilli(), 36), rand.Uint32())
}

// loadSession brings a conversation back from its file (section 20.2). Nobody else is
// told of the session (facts, section 2.1).
func loadSession(s *Server, x *request) command.Outcome {
	if ss := x.find(); ss != nil {
		return x.haveAlready(ss)
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
			id = s.idOf(x.client.Scope, from)
		}
		if problem := x.checkSession(id); problem != "" {
			return command.Failed(problem)
		}
		ss := newSession(x, id)
		s.register(ss)
		ss.load(from)
		return x.opened(ss)
	})
}

// idOf is the id of a session that is loaded without one: that under which it is
// listed, else, when that is taken, a new one.
func (s *Server) idOf(scope string, from conversation.Stored) string {
	id := conversation.StoredID(from.At.Path(), from.Tree.Header)
	if _, taken := s.sessions[command.Key{Scope: scope, ID: id}]; taken || !sessionIDs.MatchString(id) || command.Units(id) > command.MaxID {
		return newSessionID()
	}
	return id
}

func deleteSession(s *Server, x *request) command.Outcome {
	ss := x.find()
	deleted := wire.Encode(map[string]bool{"deleted": true})
	if ss == nil {
		_, parked := s.parked.Remove(command.Key{Scope: x.client.Scope, ID: x.Session})
		if parked || x.IsRedo() {
			return command.Outcome{Data: deleted} // everybody has been told already
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
		ss.sayDeleted()
		ss.stopFollowing()
	}}
}

// switchSession subscribes the connection; a run that is under way is told from its
// beginning.
func switchSession(s *Server, x *request) command.Outcome {
	ss := x.find()
	if ss == nil {
		return command.Failed(notFound(x.Session))
	}
	x.forSession(ss)
	return command.Outcome{Data: wire.Encode(map[string]any{"sessionInfo": ss.info()}), After: func() { x.client.subscribe(ss) }}
}

func listSessions(s *Server, x *request) command.Outcome {
	list := []sessionInfo{}
	for key, ss := range s.sessions {
		if key.Scope == x.client.Scope {
			list = append(list, ss.info())
		}
	}
	slices.SortFunc(list, func(a, b sessionInfo) int { return strings.Compare(a.SessionID, b.SessionID) })
	return command.Outcome{Data: wire.Encode(map[string]any{"sessions": list})}
}

func setName(s *Server, x *request) command.Outcome {
	name, _ := x.Text("name")
	x.on.add(sessionfile.Info{Name: strings.TrimSpace(name)})
	return command.Outcome{}
}

// checkDirectory returns why a session cannot have the working directory, or "".
// The directory is checked as pi-server does; agents run where they run. It reads the
// disk.
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
