package coven_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	covenclient "github.com/dragoman-hub/dragoman/adapters/coven/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
)

// A receipt is delivered once the agent's transport took the request, not while it is
// queued: an agent that stops reading and then disconnects has received nothing.
func TestSuccessReceiptMessageLost(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		server, client := wired(0) // the agent has to read each message
		a := &agent{t: t, conn: client, end: make(chan link.Reason, 1)}
		go func() { a.end <- coven.Serve(context.Background(), h, server, &coven.Options{}) }()
		a.register("a", "max_concurrent=2")
		if a.receive().GetWelcome() == nil {
			t.Fatal("got no Welcome, want one")
		}
		r := ask(t, h)
		delivered, lost := r.question("a", "read this"), r.question("a", "and this")
		stages := func(when string, want1, want2 core.Stage) {
			t.Helper()
			synctest.Wait()
			if got1, got2 := delivered.Receipt().Stage, lost.Receipt().Stage; got1 != want1 || got2 != want2 {
				t.Errorf("%s: got the receipts %s and %s, want %s and %s", when, got1, got2, want1, want2)
			}
		}
		stages("nothing is read", core.StageAccepted, core.StageAccepted)
		request := a.prompt().GetRequestId()
		stages("one is read", core.StageDelivered, core.StageAccepted)
		a.text(request, "I have")
		stages("and answered", core.StageAcknowledged, core.StageAccepted)
		a.hangUp()
		stages("the agent has left", core.StageAcknowledged, core.StageAccepted)
		if f := lost.Answer().Fault; f == nil || f.Code != core.CodeUnreachable {
			t.Errorf("what was never read: got %v, want it failed as unreachable", f)
		}
	})
}

// The id of the tool call links the request for approval, the decision and the execution.
// Without approval there is no execution.
func TestApprovalGivenButNothingProvesWhatFollowed(t *testing.T) {
	for name, approved := range map[string]bool{"approved": true, "refused": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
				executed := 0
				decided := make(chan core.ApprovalDecided, 1)
				hireWith(t, h, core.Card{ID: "a"}, func(_ context.Context, _ core.Request, say func(core.Body) error) error {
					if err := say(core.ToolCall{ID: "t1", Name: "rm", Input: `{"all":true}`}); err != nil {
						return err
					}
					if err := say(core.ApprovalRequested{ID: "t1", Name: "rm", Input: `{"all":true}`}); err != nil {
						return err
					}
					d := <-decided
					if !d.Approved {
						return say(core.ToolState{ID: d.ID, State: core.ToolDenied})
					}
					executed++
					return say(core.ToolResult{ID: d.ID, Output: "removed"})
				}, covenclient.WorkOptions{Decided: func(d core.ApprovalDecided) { decided <- d }})
				r := ask(t, h)
				task := r.question("a", "clean up")
				r.until(task, core.KindApprovalRequested)
				if err := r.s.Decide(hub.NoWait, task.ID(), core.ApprovalDecided{ID: "t1", Approved: approved}); err != nil {
					t.Fatal(err)
				}
				r.until(task, core.KindDone)
				want := "opened assigned accepted tool_call approval_requested approval_decided tool_state done"
				if approved {
					want = "opened assigned accepted tool_call approval_requested approval_decided tool_result done"
				}
				if got := kinds(task); got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
				if (executed == 1) != approved {
					t.Errorf("got it executed %d times, approved %v", executed, approved)
				}
			})
		})
	}
}
