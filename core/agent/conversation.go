package agent

import (
	"cmp"

	"github.com/dragoman-hub/dragoman/core"
)

// Conversation is what a session of an agent belongs to: a thread of one requester. The requester
// is part of it because the name of a thread is no secret, and a session tells what was said in
// it to anybody who asks there. It is comparable, and can be part of the record of a session.
type Conversation struct {
	Thread core.ThreadID `json:"thread"`
	// Owner is the id of the principal who asks; "" if it is unknown or proved no identity.
	// Requesters who proved none share a conversation, as they read what the others said anyway.
	// Where the host does not know who asks, all requesters of a thread share it.
	Owner string `json:"owner,omitempty"`
}

// ConversationOf returns the conversation that a task belongs to. A task that was asked outside a
// thread begins one that has the id of the task, as it does at the hub.
func ConversationOf(t Turn) Conversation {
	c := Conversation{Thread: cmp.Or(t.Request().Thread, core.ThreadID(t.Task()))}
	if who := t.From(); who.Authenticated {
		c.Owner = who.ID
	}
	return c
}

// BeganWith reports whether the task began the conversation, because it was asked outside a
// thread. Few ask again there: a session that costs something need not be kept for it, as a later
// task has the history of the thread.
func (c Conversation) BeganWith(task core.TaskID) bool { return c.Thread == core.ThreadID(task) }
