package hub_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/roster"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// standby connects a session with an id and no card.
func (g *testHub) standby(id string) *hub.Session {
	g.t.Helper()
	s := g.connect(id)
	card := core.Card{ID: core.AgentID(id), Dialect: "test", Features: able | core.FeatureNotices}
	if err := s.Join(card, hub.JoinOptions{OnlyByID: true}); err != nil {
		g.t.Fatalf("becoming reachable as %s: got %v, want no error", id, err)
	}
	return s
}

func (g *testHub) wantAgents(when string, want ...core.AgentID) {
	g.t.Helper()
	got := g.hub.Agents(core.Principal{Operator: true})
	same := len(got) == len(want)
	for i := range want {
		same = same && got[i].ID == want[i]
	}
	if !same {
		g.t.Errorf("%s: got the agents %+v, want %v", when, got, want)
	}
}

func TestAStandbyBecomesAnAgentWithItsFirstTask(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		quiet, asker := g.standby("quiet"), g.connect("r")
		everywhere := []core.Address{core.ToAny(), core.ToCapability("x"), core.ToDomain("work")}
		for _, to := range everywhere {
			_, err := asker.Open(core.Request{To: to, Content: "go"}, hub.OpenOptions{})
			g.wantFault("before, to "+to.String(), err, map[bool]core.Code{true: core.CodeUnknownDomain, false: core.CodeUnknownAgent}[to.Domain() != ""])
		}
		g.wantAgents("before")
		if a, ok := g.hub.Reach(core.Principal{Operator: true}, "quiet"); !ok || a.Principal.ID != "quiet" || a.Load.State != core.LoadIdle || a.Since.IsZero() {
			t.Errorf("reach: got %+v and %t, want quiet, idle", a, ok)
		}
		task := g.ask(asker, "quiet")
		g.wantAgents("then", "quiet")
		g.report(quiet, task, core.Done{})
		for _, to := range everywhere {
			_, err := asker.Open(core.Request{To: to, Content: "go"}, hub.OpenOptions{})
			g.wantFault("after, to "+to.String(), err, map[bool]core.Code{true: core.CodeUnknownDomain, false: core.CodeUnknownAgent}[to.Domain() != ""])
		}
		g.report(quiet, g.ask(asker, "quiet"), core.Done{})
		notice := g.open(asker, core.Request{To: core.ToAgent("quiet"), Intent: core.IntentNotify, Notice: &core.Notice{Topic: "a"}})
		quiet.Delivered(notice.ID())
		quiet.Close(nil)
		g.wantAgents("once it has left")
		_, err := asker.Open(core.Request{To: core.ToAgent("quiet"), Content: "go"}, hub.OpenOptions{})
		g.wantFault("asking an agent that left", err, core.CodeUnknownAgent)
	})
}

func TestAStandbyTakesNoTaskThatWaitsForAnotherAgent(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		busy, quiet, asker := g.agent("busy", able), g.standby("quiet"), g.connect("r")
		first, waiting := g.ask(asker, "*"), g.ask(asker, "*")
		g.report(quiet, g.ask(asker, "quiet"), core.Done{})
		g.wantKinds("what waits for anybody", waiting.Events(), "opened")
		g.report(busy, first, core.Done{})
		g.report(busy, waiting, core.Done{})
	})
}

func TestAnAliasReachesAnAgentOfAnyDialectInAnySpelling(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		asker := g.connect("r")
		const key = "ed25519.21FE31dfa154a261626bf854046fd227"
		for id, s := range map[string]*hub.Session{"full": g.agent("full", able), "quiet": g.standby("quiet"), key: g.standby(key)} {
			alias := string(roster.Alias(core.AgentID(id)))
			all := []string{id, alias, strings.ToUpper(alias), "ed25519." + alias, "ED25519." + alias}
			if id == key {
				all = append(all, strings.ToLower(key), key[len("ed25519."):])
			}
			for _, to := range all {
				task := g.ask(asker, to)
				if got := task.Agent(); string(got) != id || !roster.SameAgent(to, got) {
					t.Fatalf("to %s: got agent %q, want %q", to, got, id)
				}
				g.report(s, task, core.Done{})
			}
			s.Close(nil)
			_, err := asker.Open(core.Request{To: core.ToAgent(core.AgentID(alias)), Content: "go"}, hub.OpenOptions{})
			g.wantFault("the alias of an agent that left", err, core.CodeUnknownAgent)
		}
		if roster.SameAgent("nobody", "somebody") || roster.SameAgent(string(roster.Alias("nobody")), "somebody") {
			t.Error("another name: got the same agent, want a different one")
		}
	})
}

func TestAnAliasOfAConnectedAgentCanBeTakenByNobody(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		const key = "21fe31dfa154a261626bf854046fd227"
		a := g.agent("a", able)
		g.agent("ed25519."+key, able)
		for _, id := range []string{string(roster.Alias("a")), strings.ToUpper(string(roster.Alias("a"))), key} {
			for _, byID := range []bool{false, true} {
				err := g.connect("thief").Join(core.Card{ID: core.AgentID(id)}, hub.JoinOptions{OnlyByID: byID})
				g.wantFault(id, err, core.CodeConflict)
			}
		}
		a.Close(nil)
		g.agent(string(roster.Alias("a")), able) // it is free again
	})
}

func TestAnIDHasPrecedenceOverAnAlias(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		other := g.agent(string(roster.Alias("a")), able)
		g.agent("a", able)
		task := g.ask(g.connect("r"), string(roster.Alias("a")))
		if got := task.Agent(); got != roster.Alias("a") {
			t.Errorf("got agent %q, want the agent with that id", got)
		}
		g.report(other, task, core.Done{})
		other.Close(nil)
		if got, ok := g.hub.Agent(core.Principal{Operator: true}, roster.Alias("a")); !ok || got.ID != "a" {
			t.Errorf("after it left: got %q, want a", got.ID)
		}
	})
}

func TestTheNameOfAnAgentIsNoIDOfAnotherPrincipal(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		first := g.as("alice")
		if err := first.Join(core.Card{ID: "agent-1", Name: "Shout"}, hub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
		g.wantFault("another principal", g.as("bob").Join(core.Card{ID: "shout"}, hub.JoinOptions{}), core.CodeConflict)
		g.wantFault("the id in capitals", g.as("bob").Join(core.Card{ID: "AGENT-1"}, hub.JoinOptions{}), core.CodeConflict)
		if err := g.as("alice").Join(core.Card{ID: "shout"}, hub.JoinOptions{}); err != nil {
			t.Errorf("the same principal: got %v, want no error", err)
		}
		first.Close(nil)
		if err := g.as("bob").Join(core.Card{ID: "SHOUT"}, hub.JoinOptions{}); err == nil {
			t.Error("an id that is the name of another agent but for its case: got no error, want a conflict")
		}
	})
}

func TestAPrincipalRegistersTheAgentsOfItsCredentialAlone(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		for _, c := range []struct {
			allowed []string
			id      string
			ok      bool
		}{
			{nil, "alice", true},
			{nil, "bob", false},
			{[]string{"team-*", "shout"}, "team-1", true},
			{[]string{"team-*", "shout"}, "shout", true},
			{[]string{"team-*", "shout"}, "alice", false},
			{[]string{"*-of-*-kind"}, "one-of-a-kind", true},
			{[]string{"*-of-*-kind"}, "one-of-akind", false},
		} {
			p := core.Principal{ID: "alice", Authenticated: true, Credential: &core.Credential{Agents: c.allowed}}
			for _, byID := range []bool{false, true} {
				s := g.connectAs(p)
				err := s.Join(core.Card{ID: core.AgentID(c.id)}, hub.JoinOptions{OnlyByID: byID})
				if s.Close(nil); c.ok && err != nil {
					t.Errorf("%s with %v: got %v, want no error", c.id, c.allowed, err)
				} else if !c.ok {
					g.wantFault(fmt.Sprintf("%s with %v", c.id, c.allowed), err, core.CodeNotAuthorized)
				}
			}
		}
	})
}

func TestAnAgentDoesNotAskItself(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		first, second := g.standby("quiet"), g.standby("quiet")
		for _, s := range []*hub.Session{first, second} {
			_, err := s.Open(core.Request{To: core.ToAgent(roster.Alias("quiet")), Content: "go"}, hub.OpenOptions{})
			g.wantFault("asking itself", err, core.CodeLoop)
		}
		g.wantAgents("after that")
	})
}

func TestAStandbyMayJoinAsAnOrdinaryAgent(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		asker := g.connect("r")
		card := core.Card{ID: "quiet", Dialect: "test", Features: able, Capabilities: []string{"x"}, MaxConcurrent: 2}
		for _, asked := range []bool{false, true} {
			quiet := g.standby("quiet")
			var task *task.Task
			if asked {
				task = g.ask(asker, "quiet")
			}
			other := card
			other.ID = "loud"
			g.wantFault("another id", quiet.Join(other, hub.JoinOptions{}), core.CodeConflict)
			g.wantFault("the same again", quiet.Join(card, hub.JoinOptions{OnlyByID: true}), core.CodeConflict)
			if err := quiet.Join(card, hub.JoinOptions{}); err != nil {
				t.Fatalf("joining with a card, asked before %t: got %v, want no error", asked, err)
			}
			g.wantFault("joining twice", quiet.Join(card, hub.JoinOptions{}), core.CodeConflict)
			g.wantAgents("in full", "quiet")
			if asked {
				if a, _ := g.hub.Agent(core.Principal{Operator: true}, "quiet"); a.Load.Active != 1 {
					t.Errorf("active: got %d, want the tasks assigned before", a.Load.Active)
				}
				g.report(quiet, task, core.Done{})
			}
			for _, to := range []string{"*", "capability:x", "quiet"} {
				g.report(quiet, g.ask(asker, to), core.Done{})
			}
			quiet.Close(nil)
			g.wantAgents("once it has left")
		}
	})
}

func TestAJoiningAgentTakesTheIDOfAnIdleStandby(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		quiet, asker, loud := g.standby("kit"), g.connect("r"), g.connect("kit2")
		task := g.ask(asker, "kit")
		g.wantFault("while it works", loud.Join(core.Card{ID: "kit"}, hub.JoinOptions{}), core.CodeConflict)
		g.report(quiet, task, core.Done{})
		if err := loud.Join(core.Card{ID: "kit", Name: "Loud"}, hub.JoinOptions{}); err != nil {
			t.Fatalf("from an idle standby: got %v, want no error", err)
		}
		g.report(loud, g.ask(asker, "kit"), core.Done{})
		g.wantFault("a report by the replaced standby", quiet.Report(task.ID(), core.Done{}, nil), core.CodeNotAuthorized)
		g.wantFault("joining as well", quiet.Join(core.Card{ID: "kit"}, hub.JoinOptions{}), core.CodeConflict)
		loud.Close(nil)
		g.wantAgents("once that has left")
		g.report(quiet, g.ask(asker, "kit"), core.Done{})
	})
}

func TestTheLatestOfSeveralStandbysWithOneIDGetsRequests(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		first, second, asker := g.standby("kit"), g.standby("kit"), g.connect("r")
		g.report(second, g.ask(asker, "kit"), core.Done{})
		third := g.standby("kit")
		g.report(second, g.ask(asker, string(roster.Alias("kit"))), core.Done{}) // an owner that answers keeps its id
		third.Close(nil)
		second.Close(nil)
		g.report(first, g.ask(asker, string(roster.Alias("kit"))), core.Done{})
	})
}

func TestARefusedRequestMakesNoSessionAnAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &testHub{t, coretest.NewHub(t, hub.Options{Authorizer: notAsking(t, "r", "*")})}
		g.standby("quiet")
		_, err := g.connect("r").Open(core.Request{To: core.ToAgent("quiet"), Content: "go"}, hub.OpenOptions{})
		g.wantFault("a principal that may ask no agent", err, core.CodeNotAuthorized)
		g.wantAgents("after that")
	})
}

func TestTheToolsReachAStandbyByItsID(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		quiet, asker := g.standby("quiet"), g.agent("a", able)
		asker.CallTool("1", "agents_list", nil)
		asker.CallTool("2", "agent_ask", []byte(`{"to":"quiet","content":"hi"}`))
		b, _ := g.batch(quiet)
		g.report(quiet, b.Task, core.Done{Text: "hello"})
		asker.CallTool("3", "agents_list", nil)
		got := map[string]string{}
		for {
			b, ok := g.batch(asker)
			if !ok {
				break
			}
			if b.Tool != nil {
				got[b.Tool.Call] = string(b.Tool.Output)
			}
		}
		if len(got) != 3 || strings.Contains(got["1"], "quiet") || !strings.Contains(got["2"], `"text":"hello"`) || !strings.Contains(got["3"], `"id":"quiet","name":"quiet","dialect":"test","capabilities":[],"domains":[]`) {
			t.Errorf("got %s, want an answer, and then quiet in the list, without capabilities", got)
		}
	})
}

func TestAStandbyKeepsItsIDFromOtherPrincipals(t *testing.T) {
	for _, c := range []struct {
		name          string
		first, second string // principals; "" is not authenticated
		free          bool
	}{
		{"the same principal", "alice", "alice", true},
		{"another principal", "alice", "bob", false},
		{"unauthenticated after alice", "alice", "", false},
		{"alice after unauthenticated", "", "alice", false},
		{"both unauthenticated", "", "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			withHub(t, hub.Limits{}, func(g *testHub) {
				who := func(principal string) *hub.Session {
					if principal == "" {
						return g.connect("local")
					}
					return g.as(principal)
				}
				first, called, joins := who(c.first), who(c.second), who(c.second)
				if err := first.Join(core.Card{ID: "a"}, hub.JoinOptions{OnlyByID: true}); err != nil {
					t.Fatal(err)
				}
				for _, err := range []error{
					called.Join(core.Card{ID: "a"}, hub.JoinOptions{OnlyByID: true}),
					joins.Take(g.t.Context(), core.Card{ID: "a"}, hub.JoinOptions{}),
				} {
					if c.free && err != nil {
						t.Errorf("got %v, want no error", err)
					}
					if !c.free {
						g.wantFault("the id", err, core.CodeConflict)
					}
				}
			})
		})
	}
}

// onCancel is an observer that calls a function at the first request to cancel.
type onCancel struct{ call func() }

func (*onCancel) Joined(core.Card)             {}
func (*onCancel) Left(core.AgentID, bool)      {}
func (*onCancel) Recorded(core.TaskID, uint64) {}
func (o *onCancel) Appended(_ core.TaskID, e core.Event) {
	if call := o.call; call != nil && e.Body.Kind() == core.KindCancelRequested {
		o.call = nil
		call()
	}
}

// A closing session first ends its children, which cancels their requests, and then fails
// its tasks: in between it still has its tasks.
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
			t.Errorf("joining after it left: got %v, want no error", err)
		}
	})
}

// The race detector shows whether the two are synchronised. Leaving takes long enough,
// because a closing session searches the calls that wait for packs.
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
		for quiet.Provide("kit", nil) == nil { // until it starts to leave
			runtime.Gosched()
		}
		if err := newcomer.Join(core.Card{ID: "kit"}, hub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
		<-left
		newcomer.Close(nil)
	}
}
