package pi

import (
	"context"
	"fmt"

	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// begun is what commands say that give a session another conversation: nobody here
// cancels one.
func begun() outcome { return outcome{data: wire.Encode(map[string]bool{"cancelled": false})} }

// restart gives the session a conversation that its thread does not have. What was
// queued for the one before is dropped. Server.mu is held.
func (s *Server) restart(ss *session, t *tree) {
	s.beginTree(ss, t)
	s.recall(ss, core.ThreadID(t.header.ID))
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
	t := ss.tree.successor(ss.key.id, parent)
	s.noteAgent(ss, t)
	if level := ss.tree.level; level != "" {
		t.grow(sessionfile.ThinkingLevelChange{ThinkingLevel: level})
	}
	s.restart(ss, t)
	return begun()
}

// successor is a conversation without entries, in the same directory.
func (t *tree) successor(session, parent string) *tree {
	return newTree(core.NewID(), session, t.header.Cwd, parent)
}

// switchFile lets the session go on with the conversation of a file.
func switchFile(s *Server, x *execution) outcome {
	path, _ := x.text("sessionPath")
	ss := x.on
	return s.work(x, func(context.Context) outcome {
		from, problem := s.readStored(x.client.scope, path)
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

// forkable is a message that a conversation can be forked before.
type forkable struct {
	EntryID string `json:"entryId"`
	Text    string `json:"text"`
}

// forkMessages lists what the user has said, on all branches.
func forkMessages(s *Server, x *execution) outcome {
	nodes := x.on.tree.nodes
	return s.work(x, func(context.Context) outcome {
		list := []forkable{}
		for _, n := range nodes {
			if !n.asks() {
				continue
			}
			if text := n.said().text(); text != "" {
				list = append(list, forkable{n.ID(), text})
			}
		}
		return outcome{data: wire.Encode(map[string]any{"messages": list})}
	})
}

// asks reports whether the entry is a message of the user.
func (n *node) asks() bool { return n.Type == sessionfile.TypeMessage && n.role == roleUser }

// fork goes on in a file of its own, as if the message of the user had not been said
// yet; the client may say something else.
func fork(s *Server, x *execution) outcome {
	id, _ := x.text("entryId")
	ss := x.on
	at := ss.tree.find(id)
	if at == nil || !at.asks() {
		return failed("Invalid entry ID for forking")
	}
	t := ss.tree.successor(ss.key.id, ss.path())
	for _, n := range pathTo(at.parent) {
		t.add(n.Entry, n.said())
	}
	t.rebuild()
	if t.name != ss.tree.name {
		t.grow(sessionfile.Info{Name: ss.tree.name})
	}
	for _, n := range t.nodes[:len(t.nodes):len(t.nodes)] {
		id := n.ID()
		if label := ss.tree.labels[id]; label != t.labels[id] {
			t.grow(sessionfile.Label{TargetID: id, Label: label})
		}
	}
	s.restart(ss, t)
	return outcome{data: wire.Encode(map[string]any{"sessionId": t.header.ID, "text": at.said().text(), "cancelled": false})}
}
