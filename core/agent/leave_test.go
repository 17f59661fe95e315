package agent_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
)

func TestAnAgentThatIsAskedToLeaveFinishesItsTasksAndTakesNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		leave := agent.NewLeave(func() { d.note("left") })
		sent := make(chan struct{})
		disconnected := leave.Connected(func() { d.note("told") }, func() { <-sent })
		goOn := make(chan struct{})
		var tasks *agent.Tasks[string]
		tasks = agent.Run(agent.WithLeave(t.Context(), leave), 1, 1, func(_ context.Context, id, _ string) {
			tasks.Release(id) // its end is still to be sent
			<-goOn
			d.note("%s ends", id)
		})
		for _, id := range []string{"runs", "waits"} {
			if got := tasks.Add(id, ""); got != nil {
				t.Errorf("%s: got %v, want it taken", id, got)
			}
			synctest.Wait()
		}
		if got := leave.Ask(); got != 2 {
			t.Errorf("got %d tasks to finish, want 2", got)
		}
		d.want(t, "told")
		if got := tasks.Add("late", ""); got == nil || got.Code != core.CodeUnreachable || !got.Retryable {
			t.Errorf("a late task, of which there is one too many: got %v, want it refused as unreachable, retryable", got)
		}
		goOn <- struct{}{}
		d.want(t, "told", "runs ends")
		goOn <- struct{}{}
		d.want(t, "told", "runs ends", "waits ends")
		close(sent)
		d.want(t, "told", "runs ends", "waits ends", "left")
		tasks.Close()
		disconnected()
	})
}

func TestAnAgentWithoutTasksLeavesAtOnce(t *testing.T) {
	left := 0
	leave := agent.NewLeave(func() { left++ })
	if leave.Begin() != nil || leave.IsAsked() {
		t.Error("got a task refused, want it taken")
	}
	leave.End()
	if got := leave.Ask(); got != 0 || left != 1 || !leave.IsAsked() {
		t.Errorf("got %d tasks and %d ends, want no task and one end", got, left)
	}
}

func TestAConnectionThatHasEndedKeepsNoAgentFromLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d diary
		leave := agent.NewLeave(func() { d.note("left") })
		never := func() { t.Error("the connection that has ended was used") }
		leave.Connected(never, never)()
		gone := make(chan struct{})
		disconnected := leave.Connected(nil, func() { <-gone })
		leave.Ask()
		d.want(t)
		close(gone)
		disconnected()
		d.want(t, "left")
	})
}

func TestAnAgentThatIsNeverAskedTakesEveryTask(t *testing.T) {
	leave := agent.LeaveOf(t.Context())
	leave.Connected(func() { t.Error("it was asked") }, func() { t.Error("it leaves") })()
	if refused := leave.Begin(); refused != nil || leave.IsAsked() {
		t.Errorf("got %v, want the task taken", refused)
	}
	leave.End()
}
