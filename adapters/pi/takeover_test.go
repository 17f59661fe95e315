package pi_test

import (
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// takenOver starts a run whose agent is at another hub, which has said some events.
func takenOver(t *testing.T) (*testClient, *coretest.OtherTask) {
	t.Helper()
	other, opts := coretest.NewOtherHub(t, hub.Options{})
	_, s := newServerOn(t, opts, pi.Options{Retries: -1})
	other.Join(core.Card{ID: "x", Features: core.FeatureStreaming | core.FeatureApprovals})
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "x")
	c.send(`{"id":"p","type":"prompt","sessionId":"s","message":"?"}`)
	task := other.Task()
	task.Say(core.Assigned{Agent: "x", Attempt: 1}, core.Accepted{}, core.Text{Text: "one"}, core.ApprovalRequested{ID: "k", Name: "rm"})
	return c, task
}

// ends waits for the end of the run.
func (c *testClient) ends() {
	c.t.Helper()
	c.until("agent_end")
	c.until(`"id":"p"`, `"type":"response"`)
	if got := c.ok(`{"type":"get_state","sessionId":"s"}`); has(got, `"isStreaming":true`) {
		c.t.Errorf("got the state %s, want the run over", got.Raw)
	}
}

// The hub of the agent dies, and another one ends the task.
func TestARunEndsWhereAnotherHubHasEndedItsTask(t *testing.T) {
	for what, end := range map[string]core.Body{
		"failed": core.Failed{Fault: core.NewFault(core.CodeUnreachable, "its hub is gone")}, "done": core.Done{Text: "again"}, "cancelled": core.Cancelled{},
	} {
		t.Run(what, func(t *testing.T) {
			c, task := takenOver(t)
			c.until("extension_ui_request")
			task.TakenOver()
			task.Say(end)
			c.ends()
		})
	}
}
