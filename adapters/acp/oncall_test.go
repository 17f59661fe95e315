package acp_test

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/roster"
)

// answerQuery answers the next query.
func (a *peer) answerQuery(text string) {
	a.Helper()
	e := a.expect(wire.KindQuery)
	a.send(`{"id":"%s","kind":"response","ref":"%s","payload":{"summary":"%s"}}`, core.NewID(), e.ID, text)
}

func TestAPeerWithoutCapabilitiesGetsRequestsFromAnyDialect(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		shy, rest := s.peer("shy"), s.plainSession("rest")
		for _, to := range []core.AgentID{"shy", roster.Alias("shy"), core.AgentID(strings.ToUpper(alias("shy"))), "ed25519." + roster.Alias("shy")} {
			task := s.ask(rest, core.Request{To: core.ToAgent(to), Content: "you?"})
			shy.answerQuery("me")
			if got := s.ended(task); got.Text != "me" || got.Agent != "shy" {
				t.Errorf("to %s: got %+v, want me from shy", to, got)
			}
		}
		notice := s.ask(rest, core.Request{To: core.ToAgent("shy"), Intent: core.IntentNotify, Notice: &core.Notice{Topic: "a.b"}})
		shy.expect(wire.KindNotify)
		if got := s.ended(notice); got.End != core.KindDone {
			t.Errorf("the notice: got %+v, want done", got)
		}
		for _, to := range []core.Address{core.ToAny(), core.ToCapability("x"), core.ToDomain("d")} {
			if task, err := rest.Open(core.Request{To: to, Content: "?"}, hub.OpenOptions{}); err == nil {
				t.Errorf("to %s: got agent %s, want none", to, task.Agent())
			}
		}
	})
}

func TestAPeerWithoutCapabilitiesIsListedOnceItWasAssignedATask(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		s.peer("shy")
		kit := s.peer("kit")
		kit.send(`{"id":"p1","to":"shy","kind":"ping"}`)
		if got := expect[wire.Pong](kit, wire.KindPong, "p1"); got.Status != "idle" || got.AgentName != "shy" {
			t.Errorf("pong: got %+v, want shy, idle", got)
		}
		kit.send(`{"id":"c1","to":"%s","kind":"discover"}`, alias("shy"))
		if got := expect[wire.Capabilities](kit, wire.KindCapabilities, "c1"); got.AgentName != "shy" || len(got.Domains) != 0 {
			t.Errorf("capabilities: got %+v, want shy with none", got)
		}
		kit.send(`{"id":"c2","kind":"discover"}`)
		if got := expect[wire.Capabilities](kit, wire.KindCapabilities, "c2"); len(got.Agents) != 0 {
			t.Errorf("the list before: got %+v, want none", got.Agents)
		}
		s.ask(s.plainSession("rest"), core.Request{To: core.ToAgent("shy"), Content: "?"})
		kit.send(`{"id":"c3","kind":"discover"}`)
		if got := expect[wire.Capabilities](kit, wire.KindCapabilities, "c3"); len(got.Agents) != 1 || got.Agents[0].ID != "shy" || got.Agents[0].Hex != roster.Alias("shy") {
			t.Errorf("the list then: got %+v, want shy", got.Agents)
		}
	})
}

func TestCapabilitiesMakeAFullAgentOfAPeerKnownByItsID(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		shy, rest := s.peer("shy"), s.plainSession("rest")
		first := s.ask(rest, core.Request{To: core.ToAgent("shy"), Content: "you?"})
		id := shy.expect(wire.KindQuery).ID
		shy.send(`{"id":"c","kind":"capabilities","payload":{"domains":["d"],"max_concurrent_tasks":2}}`)
		s.until(func() bool {
			a, _ := s.hub.Agent(core.Principal{Operator: true}, "shy")
			return a.MaxConcurrent == 2 && a.Load.Active == 1
		}, "it has a card, and its task still")
		second := s.ask(rest, core.Request{To: core.ToDomain("d.e"), Content: "and that?"})
		shy.answerQuery("that too")
		shy.send(`{"id":"r","kind":"response","ref":"%s","payload":{"summary":"me"}}`, id)
		if a, b := s.ended(first), s.ended(second); a.Text != "me" || b.Text != "that too" {
			t.Errorf("got %q and %q, want both answered", a.Text, b.Text)
		}
	})
}

func TestTheOtherConnectionOfAPeerGetsRequestsWhenOneLeaves(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		old, fresh, rest := s.peer("shy"), s.peer("shy"), s.plainSession("rest")
		first := s.ask(rest, core.Request{To: core.ToAgent("shy"), Content: "?"})
		fresh.answerQuery("the latest")
		s.ended(first)
		fresh.disconnect()
		second := s.ask(rest, core.Request{To: core.ToAgent("shy"), Content: "?"})
		old.answerQuery("the other")
		if got := s.ended(second); got.Text != "the other" {
			t.Errorf("got %+v, want the other", got)
		}
		// A connection with capabilities goes first, as long as the other is idle.
		able := s.agent("shy", `{"domains":["d"]}`)
		third := s.ask(rest, core.Request{To: core.ToAgent("shy"), Content: "?"})
		able.answerQuery("the able")
		s.ended(third)
	})
}

func TestAnAgentOfAnotherDialectTakesTheIDOfANonAgentPeer(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit := s.peer("kit")
		agent := s.plainAgent("kit", core.Card{})
		task := s.ask(s.plainSession("rest"), core.Request{To: core.ToAgent("kit"), Content: "?"})
		s.report(agent, task, core.Done{Text: "the agent"})
		if got := s.ended(task); got.Text != "the agent" {
			t.Errorf("got %+v, want the agent's answer", got)
		}
		kit.expectNothing()
		kit.send(`{"id":"c","kind":"capabilities","payload":{}}`)
		kit.refused("c", wire.CodeConflict, "kit")
	})
}

func TestAPeerDoesNotGetItsOwnRequests(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit := s.peer("kit")
		for _, to := range []string{"kit", alias("kit")} {
			kit.send(`{"id":"q-%s","to":"%s","kind":"query","payload":{"question":"?"}}`, to, to)
			kit.refused("q-"+to, wire.CodeLoop, "kit")
		}
		// The assigned agent may ask it: the task is the cause of that request.
		fam := s.agent("fam", `{"max_concurrent_tasks":2}`)
		kit.send(`{"id":"q1","to":"fam","kind":"query","payload":{"question":"when?"}}`)
		id := fam.expect(wire.KindQuery).ID
		fam.send(`{"id":"q2","ref":"%s","to":"kit","kind":"query","payload":{"question":"which week?"}}`, id)
		e := kit.expect(wire.KindQuery)
		kit.send(`{"id":"q3","ref":"%s","to":"fam","kind":"query","payload":{"question":"which have you?"}}`, e.ID)
		kit.refused("q3", wire.CodeLoop, "fam")
		kit.send(`{"id":"r2","ref":"%s","kind":"response","payload":{"summary":"this"}}`, e.ID)
		fam.expect(wire.KindResponse)
		fam.send(`{"id":"r1","ref":"%s","kind":"response","payload":{"summary":"Monday"}}`, id)
		kit.expect(wire.KindResponse)
	})
}

func TestAnAgentOfAnotherDialectIsAddressedByItsHexAlias(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		agent := s.plainAgent("shout", core.Card{})
		kit := s.peer("kit")
		for i, to := range []string{alias("shout"), strings.ToUpper(alias("shout")), "ed25519." + alias("shout"), "shout"} {
			id := "q" + string(rune('0'+i))
			kit.send(`{"id":"%s","kind":"query","to":"%s","payload":{"question":"hello"}}`, id, to)
			s.report(agent, s.assigned(agent), core.Done{Text: "HELLO"})
			s.nextBatch(agent)
			if got := expect[wire.Response](kit, wire.KindResponse, id); got.Summary != "HELLO" {
				t.Errorf("to %s: got %+v, want HELLO", to, got)
			}
		}
		kit.send(`{"id":"ping","kind":"ping","to":"%s"}`, alias("hub"))
		if got := expect[wire.Pong](kit, wire.KindPong, "ping"); got.AgentName != acp.DefaultHubName {
			t.Errorf("to the alias of the hub: got %+v, want the hub", got)
		}
	})
}
