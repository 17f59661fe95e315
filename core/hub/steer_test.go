package hub_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/quota"
	"github.com/dragoman-hub/dragoman/core/task"
)

func TestACancelledTaskEndsWithTheReportOfItsAgent(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		if err := asker.Cancel(task.ID(), "changed my mind"); err != nil {
			t.Fatal(err)
		}
		g.wantKinds("the agent read", g.events(agent), "assigned", "cancel_requested")
		g.sleep(time.Second)
		g.report(agent, task, core.Cancelled{Reason: "changed my mind"})
		g.wantKinds("the requester read", g.events(asker), "opened", "assigned", "cancel_requested", "cancelled")
		g.wantFault("a second cancel", asker.Cancel(task.ID(), ""), core.CodeConflict)
	})
}

func TestACancelledTaskSaysWhyWhereItsAgentDoesNot(t *testing.T) {
	for name, c := range map[string]struct {
		cancel       func(asker *hub.Session, id core.TaskID) error
		agent, wants string
	}{
		"the requester left":             {func(asker *hub.Session, _ core.TaskID) error { asker.Close(nil); return nil }, "", "the requester left"},
		"the requester has a reason":     {func(asker *hub.Session, id core.TaskID) error { return asker.Cancel(id, "plans changed") }, "", "plans changed"},
		"nobody has one":                 {func(asker *hub.Session, id core.TaskID) error { return asker.Cancel(id, "") }, "", ""},
		"the agent has words of its own": {func(asker *hub.Session, id core.TaskID) error { return asker.Cancel(id, "plans changed") }, "half of it is done", "half of it is done"},
		"the agent stopped by itself":    {func(*hub.Session, core.TaskID) error { return nil }, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			withHub(t, hub.Limits{}, func(g *testHub) {
				agent, asker := g.agent("a", able), g.connect("r")
				task := g.ask(asker, "a")
				if err := c.cancel(asker, task.ID()); err != nil {
					t.Fatal(err)
				}
				g.report(agent, task, core.Cancelled{Reason: c.agent})
				events := task.Events()
				if got, want := events[len(events)-1].Body, (core.Cancelled{Reason: c.wants}); got != want {
					t.Errorf("got the end %#v, want %#v", got, want)
				}
			})
		})
	}
}

func TestACommandWithoutASessionCountsAsNoConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &testHub{t, coretest.NewHub(t, hub.Options{Quotas: quota.NewBook(quota.Limits{Connections: 1})})}
		ana := hub.Identity{Principal: core.Principal{ID: "ana", Authenticated: true}}
		agent, asker := g.agent("a", able), g.hub.Connect(ana)
		defer asker.Close(nil)
		asked := g.ask(asker, "a")
		if err := g.hub.Do(t.Context(), ana, core.Inject{Task: asked.ID(), Context: core.Injected{Content: "be brief"}}); err != nil {
			t.Errorf("an injection: got %v, want it taken", err)
		}
		if err := g.hub.Do(t.Context(), ana, core.Cancel{Task: asked.ID()}); err != nil {
			t.Errorf("a cancel: got %v, want it taken", err)
		}
		g.wantKinds("the agent read", g.events(agent), "assigned", "injected", "cancel_requested")
		g.report(agent, asked, core.Cancelled{})
		g.wantFault("one of somebody else", g.hub.Do(t.Context(), hub.Identity{Principal: core.Principal{ID: "eve", Authenticated: true}}, core.Cancel{Task: asked.ID()}), core.CodeUnknownTask)
	})
}

func TestAnAnswerAfterACancelIsKept(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		if err := asker.Cancel(task.ID(), ""); err != nil {
			t.Fatal(err)
		}
		g.report(agent, task, core.Text{Text: "done already"}, core.Done{})
		if got := task.Answer().End; got != core.KindDone {
			t.Errorf("got %s, want done", got)
		}
	})
}

func TestAnAgentThatIgnoresACancelLosesItsConnectionAfterTwoGraces(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		asked, waits := g.ask(asker, "a"), g.ask(asker, "a")
		if err := asker.Cancel(asked.ID(), ""); err != nil {
			t.Fatal(err)
		}
		g.sleep(4 * time.Second)
		if got := asked.State(); got != task.Running {
			t.Errorf("within the grace: got %s, want running", got)
		}
		g.sleep(2 * time.Second)
		if got := asked.Answer().End; got != core.KindCancelled {
			t.Errorf("after the grace: got %s, want cancelled", got)
		}
		if got := waits.State(); got != task.Queued {
			t.Errorf("the next task: got %s, want queued while the slot is taken", got)
		}
		g.sleep(5 * time.Second)
		g.events(agent)
		if _, err := agent.Next(t.Context()); err == nil {
			t.Error("after the second grace: got no error from Next, want the reason why the session ended")
		}
	})
}

func TestASlotOfABusyAgentIsFreedAfterTwoGraces(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able, func(c *core.Card) { c.MaxConcurrent = 2 }), g.connect("r")
		asked, other, waits := g.ask(asker, "a"), g.ask(asker, "a"), g.ask(asker, "a")
		if err := asker.Cancel(asked.ID(), ""); err != nil {
			t.Fatal(err)
		}
		g.sleep(11 * time.Second)
		if got := waits.State(); got != task.Running {
			t.Errorf("the next task: got %s, want running", got)
		}
		g.report(agent, other, core.Done{})
	})
}

func TestAnAgentThatCannotBeCancelledKeepsItsSlotUntilItEnds(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", 0), g.connect("r")
		asked, waits := g.ask(asker, "a"), g.ask(asker, "a")
		if err := asker.Cancel(asked.ID(), "stop"); err != nil {
			t.Fatal(err)
		}
		if got := asked.Answer().End; got != core.KindCancelled {
			t.Errorf("got %s, want cancelled at once", got)
		}
		g.wantKinds("the agent read", g.events(agent), "assigned", "cancelled")
		g.sleep(time.Minute)
		if got := waits.State(); got != task.Queued {
			t.Errorf("the next task: got %s, want queued", got)
		}
		g.wantFault("its late end", agent.Report(asked.ID(), core.Done{}, nil), core.CodeConflict)
		if got := waits.State(); got != task.Running {
			t.Errorf("the next task: got %s, want running", got)
		}
	})
}

func TestATaskInTheQueueIsCancelledAtOnce(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		g.agent("a", able)
		asker := g.connect("r")
		g.ask(asker, "a")
		waits := g.ask(asker, "a")
		if err := asker.Cancel(waits.ID(), "never mind"); err != nil {
			t.Fatal(err)
		}
		if a, _ := g.hub.Agent(core.Principal{Operator: true}, "a"); waits.Answer().End != core.KindCancelled || a.Load.Queued != 0 {
			t.Errorf("got %s with %d queued, want cancelled with none", waits.Answer().End, a.Load.Queued)
		}
	})
}

func TestEventReplayCrossesSessionsOrUsers(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		g.agent("a", able)
		asker, thief := g.connect("r"), g.connect("x")
		task := g.ask(asker, "a")
		g.wantFault("a cancel", thief.Cancel(task.ID(), ""), core.CodeUnknownTask)
		g.wantFault("an injection", thief.Inject(hub.NoWait, task.ID(), core.Injected{Content: "hi"}), core.CodeUnknownTask)
		_, err := g.hub.Task(t.Context(), thief.Identity().Principal, task.ID())
		g.wantFault("a look", err, core.CodeUnknownTask)
		g.wantFault("a cancel of nothing", asker.Cancel("no-such-task", ""), core.CodeUnknownTask)
	})
}

func TestRefreshKillsTheRun(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", 0, func(c *core.Card) { c.MaxConcurrent = 2 }), g.connect("r")
		dropped := g.ask(asker, "a")
		kept, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{Keep: true})
		if err != nil {
			t.Fatal(err)
		}
		asker.Close(nil)
		if got := dropped.Answer().End; got != core.KindCancelled {
			t.Errorf("the task that was not kept: got %s, want cancelled", got)
		}
		if got := kept.State(); got != task.Running {
			t.Errorf("the task that was kept: got %s, want running", got)
		}
		g.report(agent, kept, core.Text{Text: "for later"}, core.Done{})

		back := g.connect("r")
		again, err := g.hub.Task(t.Context(), back.Identity().Principal, kept.ID())
		if err != nil {
			t.Fatal(err)
		}
		if got := again.Answer().Text; got != "for later" {
			t.Errorf("got %q, want %q", got, "for later")
		}
	})
}

func TestAnInjectionReachesTheAgentAndItsAnswerTheRequester(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		if err := asker.Inject(hub.NoWait, task.ID(), core.Injected{ID: "i", Content: "by the way"}); err != nil {
			t.Fatal(err)
		}
		g.wantKinds("the agent read", g.events(agent), "assigned", "injected")
		g.report(agent, task, core.InjectionAnswered{ID: "i", Accepted: true}, core.Done{})
		g.wantKinds("the requester read", g.events(asker), "opened", "assigned", "injected", "injection_answered", "done")
	})
}

func TestAnInjectionIsRefusedIfTheAgentAcceptsNone(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		g.agent("a", core.FeatureCancellation)
		asker := g.connect("r")
		task, waits := g.ask(asker, "a"), g.ask(asker, "a")
		g.wantFault("an injection", asker.Inject(hub.NoWait, task.ID(), core.Injected{Content: "hi"}), core.CodeUnsupported)
		g.wantFault("an injection into the queue", asker.Inject(hub.NoWait, waits.ID(), core.Injected{Content: "hi"}), core.CodeConflict)
	})
}

func TestTheFirstDecisionOfAnApprovalCounts(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		g.report(agent, task, core.ToolCall{ID: "t", Name: "bash"}, core.ApprovalRequested{ID: "t", Name: "bash"})
		yes := core.ApprovalDecided{ID: "t", Approved: true}
		if err := asker.Decide(hub.NoWait, task.ID(), yes); err != nil {
			t.Fatal(err)
		}
		g.wantFault("a second decision", asker.Decide(hub.NoWait, task.ID(), yes), core.CodeConflict)
		g.wantFault("a decision that was not requested", asker.Decide(hub.NoWait, task.ID(), core.ApprovalDecided{ID: "u"}), core.CodeInvalid)
		events := g.events(agent)
		g.wantKinds("the agent read", events, "assigned", "approval_decided")
		if d := events[1].Body.(core.ApprovalDecided); d.By != "r" || !d.Approved {
			t.Errorf("got %+v, want it approved by r", d)
		}
		g.report(agent, task, core.Done{})
	})
}

func TestAnUndecidedApprovalIsDenied(t *testing.T) {
	withHub(t, hub.Limits{Deadline: time.Hour}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		g.report(agent, task, core.ApprovalRequested{ID: "t", Name: "bash"})
		g.sleep(24 * time.Hour)
		events := g.events(agent)
		g.wantKinds("the agent read", events, "assigned", "approval_decided")
		if d := events[1].Body.(core.ApprovalDecided); d.Approved || d.By != "hub" {
			t.Errorf("got %+v, want it denied by the hub", d)
		}
		g.report(agent, task, core.Done{})
	})
}

func TestAnApprovalOfAllHoldsForTheRestOfTheTask(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		g.report(agent, task, core.ApprovalRequested{ID: "1", Name: "bash"})
		if err := asker.Decide(hub.NoWait, task.ID(), core.ApprovalDecided{ID: "1", Approved: true, All: true}); err != nil {
			t.Fatal(err)
		}
		g.report(agent, task, core.ApprovalRequested{ID: "2", Name: "bash"}, core.Done{})
		g.wantKinds("the agent read", g.events(agent), "assigned", "approval_decided", "approval_decided", "done")
	})
}

func TestANoticeIsDoneOnceTheTransportAcceptedIt(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, unreadable, asker := g.agent("a", core.FeatureNotices), g.agent("unreadable", 0), g.connect("r")
		busy := g.ask(asker, "a")
		tell := core.Request{Intent: core.IntentNotify, To: core.ToAgent("a"), Notice: &core.Notice{Topic: "door.open"}}
		notice := g.open(asker, tell)
		if got := notice.State(); got != task.Running {
			t.Errorf("during a task: got %s, want running", got)
		}
		agent.Delivered(notice.ID())
		if got := notice.Answer().End; got != core.KindDone {
			t.Errorf("got %s, want done", got)
		}
		g.report(agent, busy, core.Done{})
		tell.To = core.ToAgent("unreadable")
		_, err := asker.Open(tell, hub.OpenOptions{})
		g.wantFault("a notice to an agent that takes none", err, core.CodeUnsupported)
		_ = unreadable
	})
}

func TestPoliteAgentsThatAnswerEachOtherForEver(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		polite := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: "p"}, Dialect: "test"})
		if err := polite.Join(core.Card{ID: "p", Features: core.FeatureNotices}, hub.JoinOptions{NoticeTasks: true}); err != nil {
			t.Fatal(err)
		}
		g.t.Cleanup(func() { polite.Close(nil) })
		asker := g.connect("r")
		notice := g.open(asker, core.Request{Intent: core.IntentNotify, To: core.ToAgent("p"), Notice: &core.Notice{Topic: "thanks"}})
		polite.Delivered(notice.ID())
		g.wantFault("its reply", polite.Report(notice.ID(), core.Text{Text: "you are welcome"}, nil), core.CodeConflict)
		g.wantKinds("the publisher read", g.events(asker), "opened", "assigned", "done")
		next := g.ask(asker, "p")
		if got := next.State(); got != task.Queued {
			t.Errorf("while it still replies: got %s, want queued", got)
		}
		g.wantFault("the end of its reply", polite.Report(notice.ID(), core.Done{}, nil), core.CodeConflict)
		if got := next.State(); got != task.Running {
			t.Errorf("once it has replied: got %s, want running", got)
		}
	})
}

// A task keeps the context that is injected into it, so injections are bounded like its
// request and its output.
func TestAnInjectionBeyondTheLimitOfATaskIsRefused(t *testing.T) {
	withHub(t, hub.Limits{RequestBytes: 300, TaskBytes: 1000}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		g.wantFault("more than a request", asker.Inject(hub.NoWait, task.ID(), core.Injected{Content: strings.Repeat("x", 301)}), core.CodeTooLarge)
		var err error
		n := 0
		for ; err == nil && n < 20; n++ {
			err = asker.Inject(hub.NoWait, task.ID(), core.Injected{Content: strings.Repeat("x", 100)})
		}
		g.wantFault("more than a task", err, core.CodeTooLarge)
		if n < 2 {
			t.Errorf("got the first injection refused, want some accepted")
		}
		g.report(agent, task, core.Done{})
	})
}
