package hub_test

import (
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// onCancel is an observer that calls a function at the first request to cancel.
type onCancel struct{ call func() }

func (*onCancel) Joined(core.Card)             {}
func (*onCancel) Left(core.AgentID)            {}
func (*onCancel) Recorded(core.TaskID, uint64) {}
func (o *onCancel) Appended(_ core.TaskID, e core.Event) {
	if call := o.call; call != nil && e.Body.Kind() == core.KindCancelRequested {
		o.call = nil
		call()
	}
}

// A session that closes ends its children, which cancels what they asked, before it
// fails what it works on: in between its tasks are still its own.
func TestAnAgentThatLeavesKeepsItsIDUntilItsTasksHaveEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		observer := &onCancel{}
		g := &testHub{t, hub.New(hub.Options{Observer: observer})}
		t.Cleanup(func() {
			if err := g.hub.Close(t.Context(), "over"); err != nil {
				t.Error(err)
			}
		})
		quiet, asker, newcomer := g.standby("kit"), g.connect("r"), g.connect("kit2")
		g.agent("helper", able)
		task := g.ask(asker, "kit")
		if _, err := quiet.Child().Open(core.Request{To: core.ToAgent("helper"), Content: "help"}, hub.OpenOptions{}); err != nil {
			t.Fatal(err)
		}
		card := core.Card{ID: "kit"}
		var during error
		observer.call = func() { during = newcomer.Join(card, hub.JoinOptions{}) }
		quiet.Close(nil)
		g.wantFault("joining while the agent leaves", during, core.CodeConflict)
		if f := task.Answer().Fault; f == nil || !strings.Contains(f.Message, "agent kit left") {
			t.Errorf("its task: got %v, want that agent kit left", f)
		}
		if err := newcomer.Join(card, hub.JoinOptions{}); err != nil {
			t.Errorf("joining once it has left: got %v, want no error", err)
		}
	})
}

// The race detector shows whether the two are apart: leaving takes long enough, because a
// session that closes looks through the calls that wait for packs.
func TestAnAgentMayLeaveWhileAnotherConnectionTakesItsID(t *testing.T) {
	const waiting = 2000
	g := &testHub{t, hub.New(hub.Options{Limits: hub.Limits{PackCalls: waiting}})}
	t.Cleanup(func() {
		if err := g.hub.Close(t.Context(), "over"); err != nil {
			t.Error(err)
		}
	})
	if err := g.connect("pack").Provide("slow", []tool.Definition{{Name: "slow"}}); err != nil {
		t.Fatal(err)
	}
	asker := g.connect("r")
	for range waiting {
		asker.CallTool("1", "slow", nil)
	}
	for range 20 {
		quiet, newcomer := g.standby("kit"), g.connect("kit2")
		g.report(quiet, g.ask(asker, "kit"), core.Done{})
		left := make(chan struct{})
		go func() {
			defer close(left)
			quiet.Close(nil)
		}()
		for quiet.Provide("kit", nil) == nil { // until it has begun to leave
			runtime.Gosched()
		}
		if err := newcomer.Join(core.Card{ID: "kit"}, hub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
		<-left
		newcomer.Close(nil)
	}
}
