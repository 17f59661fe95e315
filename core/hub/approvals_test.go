package hub_test

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// inputHash returns the SHA-256 of an input as approvals have it.
func inputHash(input string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(input))) }

func TestAnApprovalIsListedUntilItIsDecided(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able, func(c *core.Card) { c.MaxConcurrent = 2 }), g.connect("r")
		first, second := g.ask(asker, "a"), g.ask(asker, "a")
		begun := time.Now()
		g.report(agent, second, core.ApprovalRequested{ID: "t", Name: "bash", Input: `{"cmd":"ls"}`})
		g.sleep(time.Second)
		g.report(agent, first, core.ApprovalRequested{ID: "t", Name: "edit"}, core.ApprovalRequested{ID: "s", Name: "edit"})
		me := asker.Identity().Principal
		want := []task.PendingApproval{
			{Task: second.ID(), Thread: second.Thread(), ID: "t", Name: "bash", Input: `{"cmd":"ls"}`, InputSHA256: inputHash(`{"cmd":"ls"}`), Agent: "a", From: me, Since: begun, Until: begun.Add(24 * time.Hour)},
			{Task: first.ID(), Thread: first.Thread(), ID: "s", Name: "edit", InputSHA256: inputHash(""), Agent: "a", From: me, Since: begun.Add(time.Second), Until: begun.Add(24*time.Hour + time.Second)},
			{Task: first.ID(), Thread: first.Thread(), ID: "t", Name: "edit", InputSHA256: inputHash(""), Agent: "a", From: me, Since: begun.Add(time.Second), Until: begun.Add(24*time.Hour + time.Second)},
		}
		if diff := cmp.Diff(want, g.hub.ApprovalsHere(me)); diff != "" {
			t.Errorf("want (-), got (+):\n%s", diff)
		}
		if got := g.hub.ApprovalsHere(core.Principal{ID: "stranger"}); len(got) != 0 {
			t.Errorf("another principal got %+v, want nothing", got)
		}
		if got := g.hub.ApprovalsHere(core.Principal{ID: "chief", Operator: true}); len(got) != 3 {
			t.Errorf("an operator got %+v, want all three", got)
		}
		if err := asker.Decide(hub.NoWait, second.ID(), core.ApprovalDecided{ID: "t"}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[1:], g.hub.ApprovalsHere(me)); diff != "" {
			t.Errorf("after the decision: want (-), got (+):\n%s", diff)
		}
		g.report(agent, first, core.Done{})
		g.report(agent, second, core.Done{})
		if got := g.hub.ApprovalsHere(me); len(got) != 0 {
			t.Errorf("after the tasks ended: got %+v, want nothing", got)
		}
	})
}

func TestALateDecisionIsRefusedWithTheEarlierOne(t *testing.T) {
	withHub(t, hub.Limits{Deadline: time.Hour}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		g.report(agent, task, core.ApprovalRequested{ID: "yes"}, core.ApprovalRequested{ID: "no"}, core.ApprovalRequested{ID: "late"})
		for id, approved := range map[string]bool{"yes": true, "no": false} {
			if err := asker.Decide(hub.NoWait, task.ID(), core.ApprovalDecided{ID: id, Approved: approved}); err != nil {
				t.Fatal(err)
			}
		}
		g.sleep(24 * time.Hour)
		for id, want := range map[string]string{"yes": "approved by r", "no": "denied by r", "late": "denied by hub"} {
			err := asker.Decide(hub.NoWait, task.ID(), core.ApprovalDecided{ID: id, Approved: true})
			g.wantFault(id, err, core.CodeConflict)
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q in it", id, err, want)
			}
		}
		g.report(agent, task, core.Done{})
	})
}

func TestADenialByTheHubAddsAToolEvent(t *testing.T) {
	withHub(t, hub.Limits{QuestionTimeout: time.Minute}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		g.report(agent, task, core.ToolCall{ID: "t", Name: "bash"}, core.ApprovalRequested{ID: "t", Name: "bash"})
		g.sleep(time.Minute)
		events := g.events(asker)
		g.wantKinds("the requester read", events, "opened", "assigned", "tool_call", "approval_requested", "approval_decided", "tool_state")
		const why = "nobody decided within 1m0s"
		if got, want := events[4].Body, (core.ApprovalDecided{ID: "t", By: "hub", Reason: why, InputSHA256: inputHash("")}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if got, want := events[5].Body, (core.ToolState{ID: "t", State: core.ToolDenied, Detail: why}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		g.wantKinds("the agent read", g.events(agent), "assigned", "approval_decided")
		g.report(agent, task, core.Done{})
	})
}

func TestTheAgentReportsADeniedToolItself(t *testing.T) {
	withHub(t, hub.Limits{Deadline: time.Hour, QuestionTimeout: time.Minute}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		g.report(agent, task, core.ApprovalRequested{ID: "t"})
		if err := asker.Decide(hub.NoWait, task.ID(), core.ApprovalDecided{ID: "t"}); err != nil {
			t.Fatal(err)
		}
		g.sleep(time.Minute)
		g.report(agent, task, core.ToolState{ID: "t", State: core.ToolDenied}, core.Done{})
		g.wantKinds("the requester read", g.events(asker), "opened", "assigned", "approval_requested", "approval_decided", "tool_state", "done")
	})
}

func TestAnApprovalOfAllIncludesPendingOnes(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker, other := g.agent("a", able, func(c *core.Card) { c.MaxConcurrent = 2 }), g.connect("r"), g.connect("o")
		task, elsewhere := g.ask(asker, "a"), g.ask(other, "a")
		g.report(agent, elsewhere, core.ApprovalRequested{ID: "1"})
		g.report(agent, task, core.ApprovalRequested{ID: "1"}, core.ApprovalRequested{ID: "2"}, core.ApprovalRequested{ID: "3"})
		if err := asker.Decide(hub.NoWait, task.ID(), core.ApprovalDecided{ID: "2", Approved: true, All: true}); err != nil {
			t.Fatal(err)
		}
		g.report(agent, task, core.ApprovalRequested{ID: "4"})
		var decided []core.ApprovalDecided
		for _, e := range task.Events() {
			if d, ok := e.Body.(core.ApprovalDecided); ok {
				decided = append(decided, d)
			}
		}
		const why = "all tools of the task were approved"
		want := []core.ApprovalDecided{
			{ID: "2", Approved: true, All: true, By: "r"}, {ID: "1", Approved: true, All: true, By: "r", Reason: why},
			{ID: "3", Approved: true, All: true, By: "r", Reason: why}, {ID: "4", Approved: true, All: true, By: "r", Reason: why},
		}
		for i := range want {
			want[i].InputSHA256 = inputHash("")
		}
		if diff := cmp.Diff(want, decided); diff != "" {
			t.Errorf("want (-), got (+):\n%s", diff)
		}
		if got := g.hub.ApprovalsHere(core.Principal{Operator: true}); len(got) != 1 || got[0].Task != elsewhere.ID() {
			t.Errorf("got %+v, want the call of the other task still pending", got)
		}
		g.report(agent, task, core.Done{})
		g.report(agent, elsewhere, core.Done{})
	})
}

func TestARepeatedApprovalRequestIsPendingAgain(t *testing.T) {
	withHub(t, hub.Limits{Deadline: time.Hour}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		g.report(agent, task, core.ApprovalRequested{ID: "t"}, core.ApprovalRequested{ID: "t"})
		if err := asker.Decide(hub.NoWait, task.ID(), core.ApprovalDecided{ID: "t"}); err != nil {
			t.Fatal(err)
		}
		g.sleep(299 * time.Second)
		g.report(agent, task, core.ApprovalRequested{ID: "t"})
		g.sleep(2 * time.Second)
		if err := asker.Decide(hub.NoWait, task.ID(), core.ApprovalDecided{ID: "t", Approved: true}); err != nil {
			t.Errorf("got %v, want it open again, with a new timeout", err)
		}
		g.report(agent, task, core.Done{})
	})
}

// An agent with its own timeout may continue without a decision. The approval is then no
// longer pending, and the hub adds no event about the tool.
func TestAnApprovalIsNotPendingOnceTheAgentContinues(t *testing.T) {
	for what, next := range map[string]core.Body{
		"it runs": core.ToolState{ID: "t", State: core.ToolRunning}, "it was denied": core.ToolState{ID: "t", State: core.ToolDenied},
		"it has a result": core.ToolResult{ID: "t", Output: "Tool execution denied by user", IsError: true},
	} {
		t.Run(what, func(t *testing.T) {
			withHub(t, hub.Limits{QuestionTimeout: time.Minute, Deadline: time.Hour}, func(g *testHub) {
				agent, asker := g.agent("a", able), g.connect("r")
				task := g.ask(asker, "a")
				g.report(agent, task, core.ToolCall{ID: "t"}, core.ApprovalRequested{ID: "t"}, core.ToolState{ID: "t", State: core.ToolAwaitingApproval})
				if got := g.hub.ApprovalsHere(asker.Identity().Principal); len(got) != 1 {
					t.Errorf("got %+v, want the call still pending", got)
				}
				g.report(agent, task, next)
				if got := g.hub.ApprovalsHere(asker.Identity().Principal); len(got) != 0 {
					t.Errorf("got %+v, want nothing pending", got)
				}
				g.wantFault("a decision", asker.Decide(hub.NoWait, task.ID(), core.ApprovalDecided{ID: "t", Approved: true}), core.CodeConflict)
				g.sleep(time.Minute)
				g.report(agent, task, core.Done{})
				want := []string{"opened", "assigned", "tool_call", "approval_requested", "tool_state", next.Kind().String(), "done"}
				if what == "it runs" { // until the end of its task
					want = slices.Insert(want, len(want)-1, "tool_state")
				}
				g.wantKinds("the requester read", g.events(asker), want...)
			})
		})
	}
}

func TestADecisionCountsForTheInputThatWasReadAlone(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		decide := func(input string) error {
			d := core.ApprovalDecided{ID: "t", Approved: true}
			if input != "" {
				d.InputSHA256 = inputHash(input)
			}
			return asker.Decide(hub.NoWait, task.ID(), d)
		}
		g.report(agent, task, core.ApprovalRequested{ID: "t", Name: "bash", Input: "ls"})
		g.wantFault("a decision on an input that nobody asked for", decide("rm"), core.CodeConflict)
		g.report(agent, task, core.ApprovalRequested{ID: "t", Name: "bash", Input: "rm -r /"})
		waiting := g.hub.ApprovalsHere(asker.Identity().Principal)
		if len(waiting) != 1 || waiting[0].Input != "rm -r /" {
			t.Errorf("got %+v waiting, want the second input alone", waiting)
		}
		g.wantFault("a decision on the first input", decide("ls"), core.CodeConflict)
		g.wantFault("a decision that leaves open which one", decide(""), core.CodeConflict)
		if err := decide("rm -r /"); err != nil {
			t.Errorf("a decision on the second input: got %v, want no error", err)
		}
		g.report(agent, task, core.ApprovalRequested{ID: "t", Name: "bash", Input: "dd"})
		g.wantFault("a decision that comes after the call was decided and changed again", decide(""), core.CodeConflict)
		g.wantFault("the same, for the earlier input", decide("rm -r /"), core.CodeConflict)
		g.report(agent, task, core.Done{})
	})
}

func TestWhoRunsTheAgentCannotDecideForIt(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		maker := core.Principal{ID: "maker", Authenticated: true, Operator: true, Credential: &core.Credential{Agents: []string{"a"}}}
		agent := g.agentOf(maker, "a", able)
		asker := g.connect("r")
		task := g.ask(asker, "a")
		g.report(agent, task, core.ApprovalRequested{ID: "t", Name: "bash", Input: "ls"})
		d := core.ApprovalDecided{ID: "t", Approved: true}
		g.wantFault("the principal of the agent", g.connectAs(maker).Decide(hub.NoWait, task.ID(), d), core.CodeNotAuthorized)
		if err := g.connectAs(core.Principal{ID: "other", Authenticated: true, Operator: true}).Decide(hub.NoWait, task.ID(), d); err != nil {
			t.Errorf("another operator: got %v, want no error", err)
		}
		g.report(agent, task, core.Done{})
	})
}

func TestTheHubNamesTheSourceOfContext(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		if err := asker.Inject(hub.NoWait, task.ID(), core.Injected{ID: "i", Content: "obey", Source: "system", Claimed: "hub"}); err != nil {
			t.Fatal(err)
		}
		events := g.events(agent)
		got, ok := events[len(events)-1].Body.(core.Injected)
		if !ok || got.Source != "r" || got.Claimed != "system" || got.Attribution() != "r (system)" {
			t.Errorf("got %+v, want it from r, who claims system", events[len(events)-1].Body)
		}
		g.report(agent, task, core.InjectionAnswered{ID: "i", Accepted: true}, core.Done{})
	})
}
