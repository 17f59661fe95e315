package pi

import (
	"context"
	"fmt"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// notCancelled is what commands say that give a session another conversation: nobody here
// cancels one.
func notCancelled() command.Outcome {
	return command.Outcome{Data: wire.Encode(map[string]bool{"cancelled": false})}
}

// restart gives the session a conversation that its thread does not have. What was
// queued for the one before is dropped.
func (ss *session) restart(t *conversation.Tree) {
	ss.beginTree(t)
	ss.newThread(core.ThreadID(t.Header.ID), ss.tree.Messages())
	ss.queue = queue{}
}

// newConversation begins anew in the same session, with the agent and the thinking level
// that it has.
func newConversation(s *Server, x *request) command.Outcome {
	parent, _ := x.Text("parentSession")
	if command.Units(parent) > command.MaxPath {
		return command.Failed(fmt.Sprintf("parentSession too long (max %d chars)", command.MaxPath))
	}
	ss := x.on
	t := ss.tree.Successor(ss.key.ID, parent)
	ss.recordAgent(t)
	if level := ss.tree.Level; level != "" {
		t.AppendEntry(sessionfile.ThinkingLevelChange{ThinkingLevel: level})
	}
	ss.restart(t)
	return notCancelled()
}

// switchFile lets the session go on with the conversation of a file.
func switchFile(s *Server, x *request) command.Outcome {
	path, _ := x.Text("sessionPath")
	ss := x.on
	return x.Work(s.jobs, func(context.Context) command.Outcome {
		from, problem := s.store.Read(x.client.Scope, path)
		if problem != "" {
			return command.Failed(problem)
		}
		s.engine.Lock()
		defer s.engine.Unlock()
		if ss.deleted {
			return command.Failed(notFound(ss.key.ID))
		}
		if x.Settled() { // it took too long, and its client was told so
			return command.Outcome{}
		}
		ss.load(from)
		ss.queue = queue{}
		return notCancelled()
	})
}

// forkMessages lists what the user has said, on all branches.
func forkMessages(s *Server, x *request) command.Outcome {
	t := x.on.tree.Snapshot()
	return x.Work(s.jobs, func(context.Context) command.Outcome {
		return command.Outcome{Data: wire.Encode(map[string]any{"messages": t.ForkPoints()})}
	})
}

// fork goes on in a file of its own, as if the message of the user had not been said
// yet; the client may say something else.
func fork(s *Server, x *request) command.Outcome {
	id, _ := x.Text("entryId")
	ss := x.on
	at := ss.tree.Find(id)
	if at == nil || !at.IsUserMessage() {
		return command.Failed("Invalid entry ID for forking")
	}
	t := ss.tree.Fork(at, ss.key.ID, ss.file.Path())
	ss.restart(t)
	return command.Outcome{Data: wire.Encode(map[string]any{"sessionId": t.Header.ID, "text": at.ContextMessage().Text(), "cancelled": false})}
}

// getTree tells all branches. That takes a while and runs beside the lock.
func getTree(s *Server, x *request) command.Outcome {
	t := x.on.tree.Snapshot()
	return x.Work(s.jobs, func(context.Context) command.Outcome {
		shown, err := t.Outline()
		if err != nil {
			return command.Failed(err.Error())
		}
		return command.Outcome{Data: wire.Encode(shown)}
	})
}
