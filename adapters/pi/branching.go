package pi

import (
	"context"
	"fmt"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// begun is what commands say that give a session another conversation: nobody here
// cancels one.
func begun() outcome { return outcome{data: wire.Encode(map[string]bool{"cancelled": false})} }

// restart gives the session a conversation that its thread does not have. What was
// queued for the one before is dropped. Server.mu is held.
func (s *Server) restart(ss *session, t *conversation.Tree) {
	s.beginTree(ss, t)
	s.recall(ss, core.ThreadID(t.Header.ID))
	ss.steering, ss.following = nil, nil
}

// newConversation begins anew in the same session, with the agent and the thinking level
// that it has.
func newConversation(s *Server, x *execution) outcome {
	parent, _ := x.text("parentSession")
	if units(parent) > maxPath {
		return failed(fmt.Sprintf("parentSession too long (max %d chars)", maxPath))
	}
	ss := x.on
	t := ss.tree.Successor(ss.key.id, parent)
	s.noteAgent(ss, t)
	if level := ss.tree.Level; level != "" {
		t.Add(sessionfile.ThinkingLevelChange{ThinkingLevel: level})
	}
	s.restart(ss, t)
	return begun()
}

// switchFile lets the session go on with the conversation of a file.
func switchFile(s *Server, x *execution) outcome {
	path, _ := x.text("sessionPath")
	ss := x.on
	return s.work(x, func(context.Context) outcome {
		from, problem := s.store.Read(x.client.scope, path)
		if problem != "" {
			return failed(problem)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if ss.deleted {
			return failed(notFound(ss.key.id))
		}
		if x.settled { // it took too long, and its client was told so
			return outcome{}
		}
		s.take(ss, from)
		ss.steering, ss.following = nil, nil
		return begun()
	})
}

// forkMessages lists what the user has said, on all branches.
func forkMessages(s *Server, x *execution) outcome {
	t := x.on.tree.Frozen()
	return s.work(x, func(context.Context) outcome {
		return outcome{data: wire.Encode(map[string]any{"messages": t.Questions()})}
	})
}

// fork goes on in a file of its own, as if the message of the user had not been said
// yet; the client may say something else.
func fork(s *Server, x *execution) outcome {
	id, _ := x.text("entryId")
	ss := x.on
	at := ss.tree.Find(id)
	if at == nil || !at.Asks() {
		return failed("Invalid entry ID for forking")
	}
	t := ss.tree.Fork(at, ss.key.id, ss.file.Path())
	s.restart(ss, t)
	return outcome{data: wire.Encode(map[string]any{"sessionId": t.Header.ID, "text": at.Said().Text(), "cancelled": false})}
}

// getTree tells all branches. That takes a while and runs beside the lock.
func getTree(s *Server, x *execution) outcome {
	t := x.on.tree.Frozen()
	return s.work(x, func(context.Context) outcome {
		shown, err := t.Outline()
		if err != nil {
			return failed(err.Error())
		}
		return outcome{data: wire.Encode(shown)}
	})
}
