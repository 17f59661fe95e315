package hub_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/tool"
)

func TestEchoStorm(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, b, asker := g.agent("a", able), g.agent("b", able), g.connect("r")
		g.ask(asker, "a")
		g.ask(a, "b")
		_, err := b.Open(core.Request{To: core.ToAgent("a"), Content: "and you?"}, hub.OpenOptions{})
		g.wantFault("asking the requester", err, core.CodeLoop)
		if strings.Contains(err.Error(), "ended") {
			t.Errorf("got %v while the cause runs, want no mention of an end", err)
		}
		_, err = b.Open(core.Request{To: core.ToAny(), Content: "anybody?"}, hub.OpenOptions{})
		g.wantFault("asking any agent when all are in the chain", err, core.CodeLoop)
	})
}

func TestAChainOfTasksIsBounded(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		sessions := make([]*hub.Session, 12)
		for i := range sessions {
			sessions[i] = g.agent(fmt.Sprintf("a%02d", i), able)
		}
		g.ask(g.connect("r"), "a00")
		for i := range 8 {
			task := g.ask(sessions[i], fmt.Sprintf("a%02d", i+1))
			if task.Hops() != i+1 {
				t.Errorf("got %d hops, want %d", task.Hops(), i+1)
			}
		}
		_, err := sessions[8].Open(core.Request{To: core.ToAgent("a09"), Content: "further?"}, hub.OpenOptions{})
		g.wantFault("a ninth hop", err, core.CodeLoop)
	})
}

func TestChainDepthLaunderedThroughATimer(t *testing.T) {
	withHub(t, hub.Limits{CauseMemory: 10 * time.Second}, func(g *testHub) {
		a, b, asker := g.agent("a", able), g.agent("b", able), g.connect("r")
		g.report(a, g.ask(asker, "a"), core.Done{})
		from, to, ids := a, b, []core.AgentID{"b", "a"}
		for hops := 1; ; hops++ {
			g.sleep(time.Second)
			next, err := from.Open(core.Request{To: core.ToAgent(ids[0]), Content: fmt.Sprintf("a second later, %d", hops)}, hub.OpenOptions{})
			if hops > 8 {
				g.wantFault("a ninth hop, a second after the last task ended", err, core.CodeLoop)
				if want := "which ended less than 10s ago"; !strings.Contains(core.AsFault(err).Message, want) {
					t.Errorf("got %v, want an error that the cause is remembered: %s", err, want)
				}
				break
			}
			if err != nil || next.Hops() != hops {
				t.Fatalf("got %v and %v, want a task with %d hops", next, err, hops)
			}
			g.report(to, next, core.Done{})
			from, to, ids[0], ids[1] = to, from, ids[1], ids[0]
		}
		g.sleep(10 * time.Second)
		if task := g.ask(b, "a"); task.Hops() != 0 {
			t.Errorf("long after: got %d hops, want a new chain", task.Hops())
		}
	})
}

func TestAnAgentThatHasAnsweredMayAskItsRequesterSomethingElse(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, b, asker := g.agent("a", able), g.agent("b", able), g.connect("r")
		outer := g.open(asker, core.Request{To: core.ToAgent("a"), Content: "plan it"})
		inner := g.open(a, core.Request{To: core.ToAgent("b"), Content: "is it possible?"})
		g.report(b, inner, core.Done{})
		g.report(a, outer, core.Done{})
		_, err := b.Open(core.Request{To: core.ToAgent("a"), Content: "plan it"}, hub.OpenOptions{})
		g.wantFault("the same again", err, core.CodeLoop)
		if want := fmt.Sprintf("task %s of the same chain asked a the same", outer.ID()); !strings.Contains(core.AsFault(err).Message, want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
		back := g.open(b, core.Request{To: core.ToAgent("a"), Content: "plan it", Attachments: []core.File{{Name: "two.go", Data: []byte("2")}}})
		if got := back.Request(); back.Hops() != 2 || got.Cause != inner.ID() {
			t.Errorf("something else: got %d hops below %q, want 2 below %s", back.Hops(), got.Cause, inner.ID())
		}
		_, err = a.Open(core.Request{To: core.ToAgent("b"), Content: "why?"}, hub.OpenOptions{})
		g.wantFault("asking back while the asker waits", err, core.CodeLoop)
	})
}

func TestAnAgentNamesOnlyItsOwnTasksAsCause(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, asker := g.agent("a", able, func(c *core.Card) { c.MaxConcurrent = 2 }), g.connect("r")
		g.agent("b", able)
		mine := g.ask(asker, "a")
		other := g.ask(asker, "b")
		_, err := a.Open(core.Request{To: core.ToAgent("b"), Content: "go", Cause: other.ID()}, hub.OpenOptions{})
		g.wantFault("a cause that is not its own", err, core.CodeNotAuthorized)
		if task := g.open(a, core.Request{To: core.ToAgent("b"), Cause: mine.ID()}); task.Hops() != 1 {
			t.Errorf("got %d hops, want 1", task.Hops())
		}
	})
}

func TestATaskFromAnotherHubContinuesItsHops(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, asker := g.agent("a", able), g.connect("r")
		g.agent("b", able)
		open := func(s *hub.Session, to core.AgentID, hops int) (*task.Task, error) {
			return s.Open(core.Request{To: core.ToAgent(to), Content: "go"}, hub.OpenOptions{MinHops: hops})
		}
		first, err := open(asker, "a", 5)
		if err != nil || first.Hops() != 5 {
			t.Fatalf("got %v and %v, want a task with 5 hops", first, err)
		}
		if below, err := open(a, "b", 2); err != nil || below.Hops() != 6 {
			t.Errorf("below it: got %v and %v, want 6 hops, not the 2 that were named", below, err)
		}
		_, err = open(asker, "b", 9)
		g.wantFault("a ninth hop", err, core.CodeLoop)
	})
}

func TestATaskThatComesBackFromAnotherHubHasItsCause(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		kit, other, boss := g.connect("kit"), g.connect("other"), g.operator("boss")
		far := g.agent("far", able, func(c *core.Card) { c.MaxConcurrent = 2 })
		g.agent("b", able, func(c *core.Card) { c.MaxConcurrent = 8 })
		mine := g.ask(kit, "far")
		back := func(s *hub.Session, to core.AgentID, above ...core.TaskID) (*task.Task, error) {
			return s.Open(core.Request{To: core.ToAgent(to), Content: "go"}, hub.OpenOptions{MinHops: 2, Above: above})
		}
		wantCause := func(what string, s *hub.Session, want core.TaskID, above ...core.TaskID) {
			t.Helper()
			got, err := back(s, "b", above...)
			if err != nil || got.Request().Cause != want || got.Hops() != 2 {
				t.Errorf("%s: got %v and %v, want the cause %q and 2 hops", what, got, err, want)
			}
		}
		wantCause("of the same requester", kit, mine.ID(), "elsewhere", mine.ID(), "elsewhere too")
		wantCause("of an operator", boss, mine.ID(), mine.ID())
		wantCause("of the agent that works on it", g.connect("far"), mine.ID(), mine.ID())
		wantCause("of somebody else", other, "", mine.ID())
		wantCause("unknown here", kit, "", "elsewhere")
		_, err := back(other, "far", mine.ID())
		g.wantFault("to the agent that works on the cause", err, core.CodeLoop)
		g.report(far, mine, core.Done{})
		wantCause("of a task that has ended", kit, "", mine.ID())
	})
}

func TestRefusalThatKillsTheRunInsteadOfInformingIt(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		a.CallTool("c", "agent_ask", []byte(`{"to":"a","content":"myself?"}`))
		o := g.tool(a)
		if o.Fault == nil || o.Fault.Code != core.CodeLoop {
			t.Fatalf("got %+v, want a loop fault", o)
		}
		g.report(a, task, core.Text{Text: "then not"}, core.Done{})
		if got := task.Answer().End; got != core.KindDone {
			t.Errorf("the run: got %s, want done", got)
		}
	})
}

// tool reads the session until it returns the output of a tool.
func (g *testHub) tool(s *hub.Session) *tool.Result {
	g.t.Helper()
	synctest.Wait() // a read of the journal runs in another goroutine
	for {
		b, ok := g.batch(s)
		if !ok {
			g.t.Fatal("got no output of a tool, want one")
		}
		if b.Tool != nil {
			return b.Tool
		}
	}
}

func TestAgentsCannotNotifyEachOtherForever(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, b := g.agent("a", core.FeatureNotices), g.agent("b", core.FeatureNotices)
		tell := func(from *hub.Session, to string) (*task.Task, error) {
			return from.Open(core.Request{Intent: core.IntentNotify, To: core.ToAgent(core.AgentID(to)), Notice: &core.Notice{Topic: "thanks"}}, hub.OpenOptions{})
		}
		from, to, names := a, b, []string{"b", "a"}
		passed := 0
		for ; passed < 20; passed++ {
			notice, err := tell(from, names[0])
			if err != nil {
				g.wantFault("at last", err, core.CodeLoop)
				break
			}
			to.Delivered(notice.ID())
			from, to, names[0], names[1] = to, from, names[1], names[0]
		}
		if passed < 2 || passed > 10 {
			t.Errorf("got %d notices delivered, want at least an answer, and an end", passed)
		}
		if _, err := tell(a, "a"); err == nil {
			t.Error("notifying itself: got no error, want one")
		}
	})
}

func TestAnAgentThatAsksOverAnotherConnectionOfItsPrincipalDoesNotBeginAnew(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		p := core.Principal{ID: "maker", Authenticated: true, Credential: &core.Credential{Kind: core.KindAgent, Agents: []string{"a"}}}
		a, rest := g.agentOf(p, "a", able), g.connectAs(p)
		b := g.agent("b", able)
		first := g.ask(g.connect("r"), "a")
		_, err := rest.Open(core.Request{To: core.ToAgent("a"), Content: "again"}, hub.OpenOptions{})
		g.wantFault("asking itself over another connection", err, core.CodeLoop)
		below := g.ask(rest, "b")
		if got := below.Request(); below.Hops() != 1 || got.Cause != first.ID() {
			t.Errorf("asking another: got %d hops below %q, want 1 below %s", below.Hops(), got.Cause, first.ID())
		}
		g.report(b, below, core.Done{})
		if _, err := rest.Open(core.Request{To: core.ToAgent("b"), Content: "go", Cause: first.ID()}, hub.OpenOptions{}); err != nil {
			t.Errorf("naming the cause: got %v, want no error", err)
		}
		g.report(a, first, core.Done{})
		_, err = rest.Open(core.Request{To: core.ToAgent("a"), Content: "once more"}, hub.OpenOptions{})
		g.wantFault("just after its end", err, core.CodeLoop)
	})
}

func TestAnAgentForWhichAnotherSessionAsksDoesNotBeginAnew(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		p := core.Principal{ID: "maker", Authenticated: true, Credential: &core.Credential{Kind: core.KindAgent, Agents: []string{"a"}}}
		a, proxy := g.agentOf(p, "a", able), g.operator("proxy")
		g.agent("b", able)
		first := g.ask(g.connect("r"), "a")
		ask := func(to core.AgentID) (*task.Task, error) {
			return proxy.Open(core.Request{To: core.ToAgent(to), Content: "again"}, hub.OpenOptions{For: p, Unwatched: true})
		}
		_, err := ask("a")
		g.wantFault("asking itself by another session", err, core.CodeLoop)
		if below, err := ask("b"); err != nil || below.Hops() != 1 || below.Request().Cause != first.ID() {
			t.Errorf("asking another: got %v and %v, want 1 hop below %s", below, err, first.ID())
		}
		if other := g.ask(proxy, "b"); other.Hops() != 0 {
			t.Errorf("for nobody: got %d hops, want none", other.Hops())
		}
		g.report(a, first, core.Done{})
	})
}

func TestAPersonWhoRunsAnAgentGoesOnAfterItsTasks(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		p := core.Principal{ID: "ann", Authenticated: true, Credential: &core.Credential{Kind: core.KindPerson, Agents: []string{"a"}}}
		a, ann := g.agentOf(p, "a", able), g.connectAs(p)
		for range 10 {
			task := g.ask(ann, "a")
			if task.Hops() != 0 {
				t.Fatalf("got %d hops, want none", task.Hops())
			}
			g.report(a, task, core.Done{})
		}
	})
}

func TestAnAgentActsBecauseOfItsOwnWorkNotThatOfItsNeighbours(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		p := core.Principal{ID: "team", Authenticated: true, Credential: &core.Credential{Agents: []string{"*"}}}
		a, b := g.agentOf(p, "a", able), g.agentOf(p, "b", able)
		busy, mine := g.ask(g.connect("r"), "b"), g.ask(g.connect("r"), "a")
		below := g.ask(a, "b")
		if got := below.Request().Cause; got != mine.ID() || below.Hops() != 1 {
			t.Errorf("got %d hops below %q, want 1 below %s", below.Hops(), got, mine.ID())
		}
		g.report(b, busy, core.Done{})
		g.report(b, below, core.Done{})
		g.report(a, mine, core.Done{})
	})
}
