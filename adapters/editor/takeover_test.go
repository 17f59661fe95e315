package editor_test

import (
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/adapters/editor"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// The hub of the agent dies, and another one goes on with the task.
func TestATurnGoesOnWhereAnotherHubGoesOnWithItsTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other, opts := coretest.NewOtherHub(t, hub.Options{ID: "hub1"})
		s := &setup{T: t, hub: coretest.NewHub(t, opts)}
		other.Join(core.Card{ID: "far", Features: core.FeatureStreaming})
		c, session := s.begun(editor.Options{Agent: core.ToAgent("far")}, none)
		c.prompt(2, session, "one")
		task := other.Task()
		task.Say(core.Assigned{Agent: "far", Attempt: 1}, core.Accepted{}, core.Text{Text: "1"}, core.Text{Text: "2"})
		c.want(chunk("agent_message_chunk", "12"))
		task.TakenOver()
		task.Say(core.Text{Text: "3"})
		c.want(chunk("agent_message_chunk", "3"))
		task.TakenOver()
		task.Say(core.Done{})
		c.want(ended(2, "end_turn"))
		c.load(3, session)
		c.want(chunk("user_message_chunk", "one"), chunk("agent_message_chunk", "123"), result(3))
	})
}
