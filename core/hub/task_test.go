package hub_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

const able = core.FeatureCancellation | core.FeatureInjection | core.FeatureFiles

func TestARequesterReadsTheEventsInOrderUpToTheEnd(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		g.report(agent, task, core.Accepted{}, core.Thinking{Text: "hm"}, core.Text{Text: "hel"}, core.Text{Text: "lo"}, core.Done{})
		events := g.events(asker)
		g.wantKinds("the requester read", events, "opened", "assigned", "accepted", "thinking", "text", "text", "done")
		if got := text(events); got != "hello" {
			t.Errorf("got the text %q, want %q", got, "hello")
		}
		g.wantKinds("the agent read", g.events(agent), "assigned", "done")
	})
}

func TestTruncatedStreamLooksComplete(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		g.report(agent, task, core.Text{Text: "half an ans"})
		agent.Close(nil)
		events := g.events(asker)
		g.wantKinds("the requester read", events, "opened", "assigned", "text", "failed")
		f := task.Answer().Fault
		if f.Code != core.CodeUnreachable || !f.Retryable {
			t.Errorf("got the fault %+v, want a retryable unreachable one", f)
		}
	})
}

func TestFinalAnswerOvertakesChunks(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		var want strings.Builder
		for i := range 3000 {
			fmt.Fprintf(&want, "%d ", i)
			g.report(agent, task, core.Text{Text: fmt.Sprintf("%d ", i)})
		}
		g.report(agent, task, core.Done{Text: "the whole"})
		events := g.events(asker)
		if got := events[len(events)-1].Body.Kind(); got != core.KindDone {
			t.Errorf("got %s last, want done", got)
		}
		for i, e := range events {
			if e.Seq != uint64(i+1) {
				t.Fatalf("got sequence %d at index %d, want %d", e.Seq, i, i+1)
			}
		}
		if text(events) != want.String() {
			t.Errorf("got %d bytes of text, want %d", len(text(events)), want.Len())
		}
	})
}

func TestReportsAfterTheEndAreCountedAndNotDelivered(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		g.report(agent, task, core.Failed{Fault: core.NewFault(core.CodeInternal, "broke")})
		g.wantFault("a second end", agent.Report(task.ID(), core.Done{}, nil), core.CodeConflict)
		g.wantKinds("the requester read", g.events(asker), "opened", "assigned", "failed")
		if n := g.hub.Counters()["report.late"]; n != 1 {
			t.Errorf("got %d counted, want 1", n)
		}
	})
}

func TestAReportOnATaskOfAnotherAgentIsRefused(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, thief, asker := g.agent("a", able), g.agent("b", able), g.connect("r")
		task := g.ask(asker, "a")
		g.wantFault("the report of another agent", thief.Report(task.ID(), core.Text{Text: "mine"}, nil), core.CodeNotAuthorized)
		g.report(agent, task, core.Done{})
	})
}

func TestAnAgentNeverRunsMoreTasksThanItDeclared(t *testing.T) {
	withHub(t, hub.Limits{QueueLength: 2}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		first, second, third := g.ask(asker, "a"), g.ask(asker, "a"), g.ask(asker, "a")
		_, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "one too many"}, hub.OpenOptions{})
		g.wantFault("a fourth task", err, core.CodeOverloaded)
		if a, _ := g.hub.Agent(core.Principal{Operator: true}, "a"); a.Load.Active != 1 || a.Load.Queued != 2 || a.Load.State != core.LoadOverloaded {
			t.Errorf("got the load %+v, want 1 active, 2 queued, overloaded", a.Load)
		}
		for _, asked := range []*task.Task{first, second, third} {
			if got := asked.State(); got != task.Running {
				t.Errorf("got state %s, want running", got)
			}
			g.report(agent, asked, core.Done{})
		}
	})
}

func TestAnUrgentTaskOvertakesTheQueue(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		first, normal := g.ask(asker, "a"), g.ask(asker, "a")
		urgent := g.open(asker, core.Request{To: core.ToAgent("a"), Priority: core.PriorityUrgent})
		g.report(agent, first, core.Done{})
		if urgent.State() != task.Running || normal.State() != task.Queued {
			t.Errorf("got urgent %s and normal %s, want running and queued", urgent.State(), normal.State())
		}
	})
}

func TestTasksGoToTheLeastLoadedAgent(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		big := func(c *core.Card) { c.MaxConcurrent = 4 }
		g.agent("big", able, big)
		g.agent("small", able)
		asker := g.connect("r")
		got := map[core.AgentID]int{}
		for range 5 {
			got[g.ask(asker, "*").Agent()]++
		}
		if got["big"] != 4 || got["small"] != 1 {
			t.Errorf("got %v, want 4 for big and 1 for small", got)
		}
	})
}

func TestTheLongestDeclaredDomainAnswers(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		g.agent("family", able, func(c *core.Card) { c.Domains = []string{"family.*"} })
		g.agent("calendar", able, func(c *core.Card) { c.Domains = []string{"family.calendar"} })
		asker := g.connect("r")
		if got := g.ask(asker, "domain:family.calendar.today").Agent(); got != "calendar" {
			t.Errorf("got %s, want calendar", got)
		}
		if got := g.ask(asker, "domain:family.school").Agent(); got != "family" {
			t.Errorf("got %s, want family", got)
		}
		_, err := asker.Open(core.Request{To: core.ToDomain("work"), Content: "go"}, hub.OpenOptions{})
		g.wantFault("a domain that no agent serves", err, core.CodeUnknownDomain)
	})
}

func TestAnUnknownAgentIsRefusedWithSimilarIDs(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		g.agent("shout", able)
		asker := g.connect("r")
		task, err := asker.Open(core.Request{To: core.ToAgent("shuot"), Content: "go"}, hub.OpenOptions{})
		g.wantFault("a name mistyped", err, core.CodeUnknownAgent)
		if !strings.Contains(err.Error(), "shout") {
			t.Errorf("got %q, want the nearest name in it", err)
		}
		if got := g.events(asker); len(got) != 0 {
			t.Errorf("got %v from Next, want no events of the refused task", kinds(got))
		}
		if r := task.Receipt(); r.Stage != core.StageRefused || r.Fault == nil {
			t.Errorf("got the receipt %+v, want refused with its fault", r)
		}
	})
}

func TestDeniedRequestMissingFromTheLog(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		asker := g.connect("r")
		task, err := asker.Open(core.Request{To: core.ToAgent("nobody"), Content: "go"}, hub.OpenOptions{})
		g.wantFault("nobody", err, core.CodeUnknownAgent)
		g.wantKinds("the log of what was denied", task.Events(), "opened", "failed")
		if err := task.Recorded(g.t.Context(), 2); err != nil {
			t.Errorf("waiting for the journal: got %v, want no error", err)
		}
	})
}

func TestARetryableFailureBeforeAnyOutputGoesToAnotherAgent(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		able1 := func(c *core.Card) { c.Capabilities = []string{"x"} }
		a, b, asker := g.agent("a", able, able1), g.agent("b", able, able1), g.connect("r")
		task := g.ask(asker, "capability:x")
		if got := task.Agent(); got != "a" {
			t.Fatalf("got %s first, want a", got)
		}
		g.report(a, task, core.Accepted{})
		g.report(a, task, core.Failed{Fault: core.NewFault(core.CodeOverloaded, "not now")})
		g.wantFault("what the first says later", a.Report(task.ID(), core.Text{Text: "late"}, nil), core.CodeNotAuthorized)
		g.report(b, task, core.Text{Text: "ok"}, core.Done{})
		g.wantKinds("the requester read", g.events(asker), "opened", "assigned", "accepted", "retrying", "assigned", "text", "done")
	})
}

func TestAFailureAfterOutputIsNotRetried(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, _, asker := g.agent("a", able), g.agent("b", able), g.connect("r")
		task := g.ask(asker, "*")
		g.report(a, task, core.Text{Text: "be"}, core.Failed{Fault: core.NewFault(core.CodeOverloaded, "not now")})
		g.wantKinds("the requester read", g.events(asker), "opened", "assigned", "text", "failed")
	})
}

func TestATaskOfALostAgentIsRetriedIfItsAddressAllows(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, b, asker := g.agent("a", able), g.agent("b", able), g.connect("r")
		asked, waits := g.ask(asker, "*"), g.ask(asker, "a")
		if asked.Agent() != "a" || waits.State() != task.Queued {
			t.Fatalf("got %s and %s, want a and queued", asked.Agent(), waits.State())
		}
		a.Close(nil)
		g.report(b, asked, core.Done{})
		if f := waits.Answer().Fault; f == nil || f.Code != core.CodeUnreachable {
			t.Errorf("a task queued for the lost agent by name: got %v, want unreachable", f)
		}
	})
}

func TestADeadlineEndsTheTaskAndCancelsTheAgent(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.open(asker, core.Request{To: core.ToAgent("a"), Deadline: time.Now().Add(time.Minute)})
		g.report(agent, task, core.Text{Text: "so far"})
		g.sleep(time.Minute)
		g.wantKinds("the requester read", g.events(asker), "opened", "assigned", "text", "cancel_requested", "failed")
		g.wantKinds("the agent read", g.events(agent), "assigned", "cancel_requested", "failed")
		if f := task.Answer().Fault; f.Code != core.CodeTimeout {
			t.Errorf("got %v, want timeout", f)
		}
		if r := task.Receipt(); r.Stage != core.StageExpired {
			t.Errorf("got the receipt %+v, want expired", r)
		}
	})
}

func TestSuccessReceiptMessageLost(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		testHub := func(want core.Stage) {
			t.Helper()
			if got := task.Receipt().Stage; got != want {
				t.Errorf("got the stage %s, want %s", got, want)
			}
		}
		testHub(core.StageAccepted)
		agent.Delivered(task.ID())
		testHub(core.StageDelivered)
		g.report(agent, task, core.Accepted{})
		testHub(core.StageAcknowledged)
		g.report(agent, task, core.Done{})
	})
}
