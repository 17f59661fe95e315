package pi_test

import (
	"encoding/json"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/pitest"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// requestID returns the id of a request to the user.
func requestID(t *testing.T, f pitest.Frame) string {
	t.Helper()
	var asked struct{ RequestID string }
	if err := json.Unmarshal(f.Event, &asked); err != nil || asked.RequestID == "" {
		t.Fatalf("got %s and %v, want a request", f.Raw, err)
	}
	return asked.RequestID
}

// takenOver starts a run whose agent is at another hub, which has said some events.
func takenOver(t *testing.T) (*testClient, *coretest.OtherTask) {
	t.Helper()
	other, opts := coretest.NewOtherHub(t, hub.Options{})
	h, s := newServerOn(t, opts, pi.Options{Retries: -1})
	other.Join(h, core.Card{ID: "x", Features: core.FeatureStreaming | core.FeatureApprovals})
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

// The hub of the agent dies with what it had not stored, and another one ends the task: the end has a number that the
// client has seen.
func TestARunEndsWhereAnotherHubHasEndedItsTask(t *testing.T) {
	for what, end := range map[string]core.Body{
		"failed": core.Failed{Fault: core.NewFault(core.CodeUnreachable, "its hub is gone")}, "done": core.Done{Text: "again"}, "cancelled": core.Cancelled{},
	} {
		t.Run(what, func(t *testing.T) {
			c, task := takenOver(t)
			c.until("extension_ui_request")
			task.Lose(3)
			task.Say(end)
			c.until("no longer kept") // what was shown and is lost
			c.ends()
		})
	}
}

// Another hub goes on with the task: an approval that was lost with the hub is not the one that has its number now.
func TestAnApprovalThatIsLostIsNotTheOneThatHasItsNumberNow(t *testing.T) {
	c, task := takenOver(t)
	lost := requestID(t, c.until("extension_ui_request"))
	task.Lose(3)
	task.Say(core.Retrying{Attempt: 1, Agent: "x", Fault: core.NewFault(core.CodeUnreachable, "its hub is gone")}, core.Assigned{Agent: "x", Attempt: 2})
	task.Say(core.ApprovalRequested{ID: "k", Name: "rm -r"})
	if now := requestID(t, c.until("extension_ui_request", "rm -r")); now == lost {
		t.Errorf("got the id %s for two requests, want one each", now)
	}
	c.fails(`{"type":"extension_ui_response","sessionId":"s","requestId":"`+lost+`","response":{"method":"confirm","confirmed":true}}`, "No pending UI request with id "+lost)
	task.Say(core.Done{})
	c.ends()
}
