package editor_test

import (
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/adapters/editor"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// The hub of the agent dies with what it had not stored, and another one goes on with the task: what that says has
// numbers that the editor has seen.
func TestATurnGoesOnWhereAnotherHubGoesOnWithItsTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other, opts := coretest.NewOtherHub(t, hub.Options{ID: "hub1"})
		s := &setup{T: t, hub: coretest.NewHub(t, opts)}
		other.Join(s.hub, core.Card{ID: "far", Features: core.FeatureStreaming})
		c, session := s.begun(editor.Options{Agent: core.ToAgent("far")}, none)
		c.prompt(2, session, "one")
		task := other.Task()
		task.Say(core.Assigned{Agent: "far", Attempt: 1}, core.Accepted{}, core.Text{Text: "1"}, core.Text{Text: "2"})
		c.want(chunk("agent_message_chunk", "12"))
		const lost = "[a part of this turn is no longer kept]\n"
		task.Lose(1)
		task.Say(core.Text{Text: "II"})
		c.want(chunk("agent_thought_chunk", lost), chunk("agent_message_chunk", "II"))
		task.Lose(1)
		task.Say(core.Done{})
		c.want(chunk("agent_thought_chunk", lost), ended(2, "end_turn"))
		c.load(3, session)
		c.want(chunk("user_message_chunk", "one"), chunk("agent_message_chunk", "1"), result(3))
	})
}
