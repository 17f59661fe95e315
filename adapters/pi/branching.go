package pi

import (
	"context"
	"fmt"
	"strings"
	"time"

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

// load gives the session a conversation from a file, and the agent with which it was had
// last.
func (ss *session) load(from conversation.Stored) {
	s := ss.server
	ss.file.Release()
	ss.tree, ss.file = from.Tree, s.store.Open(from)
	ss.bindToLast()
	ss.newThread(core.ThreadID(core.NewID()), ss.tree.Messages()) // others may have loaded it as well
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

// move is a move to another place in the tree.
type move struct {
	target *conversation.Node
	// leaf is where the conversation goes on; nil is before all.
	leaf *conversation.Node
	// text is what the user said at the target, to be said otherwise.
	text  *string
	label string
}

// navigate moves to another entry. What is left can be summed up, so that the agent
// knows of it.
func navigate(s *Server, x *request) command.Outcome {
	t := x.on.tree
	id, _ := x.Text("targetId")
	to := t.Find(id)
	if to == nil {
		return command.Failed("Entry " + id + " not found")
	}
	if to == t.Leaf {
		return notCancelled()
	}
	options, _ := x.Object("options")
	label, _ := options.Text("label")
	j := move{target: to, leaf: to, label: label}
	if to.IsUserMessage() || to.Type == sessionfile.TypeCustomMessage {
		text := to.ContextMessage().Text()
		j.leaf, j.text = to.Parent, &text
	}
	if x.IsRedo() && options.Is("summarize", "true") {
		return command.Outcome{Data: x.PriorData()} // the summary is in the conversation, behind the move
	}
	left := t.AbandonedFor(to)
	if !options.Is("summarize", "true") || len(left) == 0 {
		return j.apply(x.on, "")
	}
	if x.on.agent.IsZero() {
		return command.Failed("No model available for summarization")
	}
	question := summaryQuestion(options)
	prepare := func() ([]core.Turn, string) { return conversation.Turns(left, s.hub.Limits().HistoryBytes), question }
	err := x.requestSummary(prepare, time.Now().Add(s.opts.Commands.PromptTimeout), func(summary string, f *core.Fault) {
		switch {
		case f != nil && f.Code == core.CodeCancelled:
			x.Finish(command.Outcome{Data: wire.Encode(map[string]bool{"cancelled": true, "aborted": true})})
		case x.on.deleted:
			x.Finish(command.Failed(notFound(x.Session)))
		case f != nil && f.Code == core.CodeUnknownAgent:
			x.Finish(command.Failed("No model available for summarization"))
		case f != nil:
			x.Finish(command.Failed(f.Message))
		case strings.TrimSpace(summary) == "":
			x.Finish(command.Failed("the agent gave no summary"))
		default:
			x.Finish(j.apply(x.on, summary))
		}
	})
	if err != nil {
		return command.Failed(core.AsFault(err).Message)
	}
	return command.Outcome{Pending: true}
}

// summaryQuestion asks for a summary of what goes along with it, as the options of
// navigate_tree want it.
func summaryQuestion(options command.Command) string {
	const ask = "Sum up the conversation before this message, so that somebody who has not read it can go on from the summary: what was wanted, " +
		"what was found out and decided, what was done and to which files, and what is still open. Answer with the summary alone."
	custom, _ := options.Text("customInstructions")
	switch {
	case custom == "":
		return ask
	case options.Is("replaceInstructions", "true"):
		return custom
	}
	return ask + "\n\n" + custom
}

// apply goes on where the move leads, with the summary of what was left if there
// is one.
func (j move) apply(ss *session, summary string) command.Outcome {
	t := ss.tree
	t.Move(j.leaf)
	marked := j.target
	if summary != "" {
		from := "root"
		if j.leaf != nil {
			from = j.leaf.ID()
		}
		marked = ss.add(sessionfile.BranchSummary{FromID: from, Summary: summary})
	}
	if j.label != "" {
		ss.add(sessionfile.Label{TargetID: marked.ID(), Label: j.label})
	}
	ss.newThread(core.ThreadID(core.NewID()), ss.tree.Messages())
	data := map[string]any{"cancelled": false}
	if j.text != nil {
		data["editorText"] = *j.text
	}
	return command.Outcome{Data: wire.Encode(data)}
}
