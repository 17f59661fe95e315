package agent_test

import (
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
)

// asked is a task of a requester in a thread.
type asked struct {
	agent.Turn
	thread core.ThreadID
	from   core.Principal
}

func (asked) Task() core.TaskID       { return "task-1" }
func (a asked) Request() core.Request { return core.Request{Thread: a.thread} }
func (a asked) From() core.Principal  { return a.from }

func TestAConversationIsAThreadOfOneRequester(t *testing.T) {
	anna := core.Principal{ID: "anna", Authenticated: true}
	for _, c := range []struct {
		name  string
		turn  asked
		want  agent.Conversation
		began bool
	}{
		{"a requester who proved its identity", asked{thread: "trip", from: anna}, agent.Conversation{Thread: "trip", Owner: "anna"}, false},
		{"one who only claims it", asked{thread: "trip", from: core.Principal{ID: "anna"}}, agent.Conversation{Thread: "trip"}, false},
		{"one whom the host does not know", asked{thread: "trip"}, agent.Conversation{Thread: "trip"}, false},
		{"a task outside a thread", asked{from: anna}, agent.Conversation{Thread: "task-1", Owner: "anna"}, true},
		{"the same from the hub, which names its thread", asked{thread: "task-1", from: anna}, agent.Conversation{Thread: "task-1", Owner: "anna"}, true},
	} {
		got := agent.ConversationOf(c.turn)
		if got != c.want || got.BeganWith("task-1") != c.began {
			t.Errorf("%s: got %+v, begun by it: %t; want %+v, %t", c.name, got, got.BeganWith("task-1"), c.want, c.began)
		}
	}
}
