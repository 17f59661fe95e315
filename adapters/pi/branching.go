package pi

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// notCancelled is the outcome of commands that give a session another conversation. In pi an
// extension may cancel them.
func notCancelled() command.Outcome {
	return command.Outcome{Data: strictjson.Encode(map[string]bool{"cancelled": false})}
}

// restart gives the session another conversation and thread, and drops queued messages.
func (ss *session) restart(t *conversation.Tree) {
	ss.beginTree(t)
	ss.newThread(core.ThreadID(t.Header.ID), ss.tree.Messages())
	ss.queue = queue{}
}

// load gives the session the conversation of a file, and its last agent.
func (ss *session) load(from conversation.Stored) {
	s := ss.server
	ss.file.Release()
	ss.tree, ss.file = from.Tree, s.store.Open(from)
	ss.bindToLast()
	ss.newThread(core.ThreadID(core.NewID()), ss.tree.Messages()) // others may have loaded it as well
}

// newConversation begins another conversation in the same session, with the same agent and
// thinking level.
func newConversation(s *Server, x *request) command.Outcome {
	parent, _ := x.Text("parentSession")
	if command.Units(parent) > command.MaxPath {
		return command.Failed(fmt.Sprintf("parentSession too long (max %d chars)", command.MaxPath))
	}
	ss := x.target
	t := ss.tree.Successor(ss.key.ID, parent)
	ss.recordAgent(t)
	if level := ss.tree.Level; level != "" {
		t.AppendEntry(sessionfile.ThinkingLevelChange{ThinkingLevel: level})
	}
	ss.restart(t)
	return notCancelled()
}

// switchFile continues the session with the conversation of a file.
func switchFile(s *Server, x *request) command.Outcome {
	path, _ := x.Text("sessionPath")
	ss := x.target
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
		if x.Settled() { // it has timed out
			return command.Outcome{}
		}
		ss.load(from)
		ss.queue = queue{}
		return notCancelled()
	})
}

// forkMessages lists the messages of the user on all branches.
func forkMessages(s *Server, x *request) command.Outcome {
	t := x.target.tree.Snapshot()
	return x.Work(s.jobs, func(context.Context) command.Outcome {
		return command.Outcome{Data: strictjson.Encode(map[string]any{"messages": t.ForkPoints()})}
	})
}

// fork continues in a file of its own before a message of the user, which the client may
// change and send again.
func fork(s *Server, x *request) command.Outcome {
	id, _ := x.Text("entryId")
	ss := x.target
	at := ss.tree.Find(id)
	if at == nil || !at.IsUserMessage() {
		return command.Failed("Invalid entry ID for forking")
	}
	t := ss.tree.Fork(at, ss.key.ID, ss.file.Path())
	ss.restart(t)
	return command.Outcome{Data: strictjson.Encode(map[string]any{"sessionId": t.Header.ID, "text": at.ContextMessage().Text(), "cancelled": false})}
}

// getTree returns all branches. It is a job, since it reads the whole conversation.
func getTree(s *Server, x *request) command.Outcome {
	t := x.target.tree.Snapshot()
	return x.Work(s.jobs, func(context.Context) command.Outcome {
		shown, err := t.Outline()
		if err != nil {
			return command.Failed(err.Error())
		}
		return command.Outcome{Data: strictjson.Encode(shown)}
	})
}

// move is a move to another entry of the tree.
type move struct {
	target *conversation.Node
	// leaf is the entry that the conversation continues after; nil is the beginning.
	leaf *conversation.Node
	// text is the user's message at the target, for the client to edit.
	text  *string
	label string
}

// navigate moves to another entry. The branch that is left can be summarized for the agent.
func navigate(s *Server, x *request) command.Outcome {
	t := x.target.tree
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
	m := move{target: to, leaf: to, label: label}
	if to.IsUserMessage() || to.Type == sessionfile.TypeCustomMessage {
		text := to.ContextMessage().Text()
		m.leaf, m.text = to.Parent, &text
	}
	if x.IsRedo() && options.Is("summarize", "true") {
		return command.Outcome{Data: x.PriorData()} // the summary is in the conversation already
	}
	left := t.AbandonedFor(to)
	if !options.Is("summarize", "true") || len(left) == 0 {
		return m.apply(x.target, "")
	}
	if x.target.agent.IsZero() {
		return command.Failed("No model available for summarization")
	}
	question := summaryQuestion(options)
	prepare := func() ([]core.Turn, string) { return conversation.Turns(left, s.hub.Limits().HistoryBytes), question }
	err := x.requestSummary(prepare, time.Now().Add(s.opts.Commands.PromptTimeout), func(summary string, f *core.Fault) {
		x.Finish(m.applySummary(x, summary, f))
	})
	if err != nil {
		return command.Failed(core.AsFault(err).Message)
	}
	return command.Outcome{Pending: true}
}

// applySummary moves once the agent has summarized the branch that is left, or has failed to.
func (m move) applySummary(x *request, summary string, f *core.Fault) command.Outcome {
	switch {
	case f != nil && f.Code == core.CodeCancelled:
		return command.Outcome{Data: strictjson.Encode(map[string]bool{"cancelled": true, "aborted": true})}
	case x.target.deleted:
		return command.Failed(notFound(x.Session))
	case f != nil && f.Code == core.CodeUnknownAgent:
		return command.Failed("No model available for summarization")
	case f != nil:
		return command.Failed(f.Message)
	case strings.TrimSpace(summary) == "":
		return command.Failed("the agent gave no summary")
	}
	return m.apply(x.target, summary)
}

// summaryQuestion asks for a summary of the conversation before it, with the options of
// navigate_tree.
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

// apply moves, and adds the summary of the branch that was left if there is one.
func (m move) apply(ss *session, summary string) command.Outcome {
	t := ss.tree
	t.Move(m.leaf)
	marked := m.target
	if summary != "" {
		from := "root"
		if m.leaf != nil {
			from = m.leaf.ID()
		}
		marked = ss.addEntry(sessionfile.BranchSummary{FromID: from, Summary: summary})
	}
	if m.label != "" {
		ss.addEntry(sessionfile.Label{TargetID: marked.ID(), Label: m.label})
	}
	ss.newThread(core.ThreadID(core.NewID()), ss.tree.Messages())
	data := map[string]any{"cancelled": false}
	if m.text != nil {
		data["editorText"] = *m.text
	}
	return command.Outcome{Data: strictjson.Encode(data)}
}
