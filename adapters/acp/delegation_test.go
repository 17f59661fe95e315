package acp_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	acpclient "github.com/dragoman-hub/dragoman/adapters/acp/client"
	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
)

func TestTheEstimateInAnAgentsAckReachesARequesterOfAnotherDialect(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		fam := s.agent("fam", `{}`)
		asked := s.ask(s.plainSession("rest"), core.Request{To: core.ToAgent("fam"), Intent: core.IntentDelegate, Content: "do it"})
		id := fam.expect(wire.KindDelegate).ID
		fam.send(`{"id":"a1","kind":"ack","ref":"%s","payload":{"accepted":true,"estimated_ms":5000}}`, id)
		s.until(func() bool { return asked.Receipt().Stage == core.StageAcknowledged }, "it is acknowledged")
		events := asked.Events()
		if got, want := events[len(events)-1].Body, core.Body(core.Accepted{Estimate: 5 * time.Second}); got != want {
			t.Errorf("event: got %+v, want %+v", got, want)
		}
		fam.send(`{"id":"r1","kind":"result","ref":"%s","payload":{"status":"completed","outcome":"done","error":null}}`, id)
		s.ended(asked)
	})
}

func TestADelegateWithoutReportEndsForItsAgentWithTheAck(t *testing.T) {
	const silent, next = `{"id":"d1","to":"fam","kind":"delegate","payload":{"task":"do it","report_back":false}}`, `{"id":"q1","to":"fam","kind":"query","payload":{"question":"?"}}`
	t.Run("of an agent that follows the draft", func(t *testing.T) {
		withHub(t, func(t *testing.T, s *setup) {
			fam, kit := s.agent("fam", `{}`), s.peer("kit")
			kit.send(silent)
			kit.expect(wire.KindAck)
			fam.expect(wire.KindDelegate)
			fam.send(`{"id":"a1","kind":"ack","ref":"d1","payload":{"accepted":true}}`)
			kit.send(next)
			fam.expect(wire.KindQuery) // its slot is free: the first delegate has no result
			fam.send(`{"id":"r1","kind":"result","ref":"d1","payload":{"status":"completed","outcome":"done"}}`)
			s.counted("acp.late", 1)
			kit.expectNothing()
		})
	})
	t.Run("of our client, when it is done", func(t *testing.T) {
		withHub(t, func(t *testing.T, s *setup) {
			s.work(core.Card{ID: "fam"}, acpclient.WorkOptions{}, func(_ context.Context, r core.Request, say func(core.Body) error) error {
				time.Sleep(time.Second)
				return say(core.Text{Text: r.Content})
			})
			kit := s.peer("kit")
			kit.send(silent)
			kit.expect(wire.KindAck)
			began := time.Now()
			kit.send(next)
			kit.expect(wire.KindResponse)
			if got := time.Since(began); got != 2*time.Second {
				t.Errorf("the next was answered after %s, want both in turn within 2s", got)
			}
		})
	})
	t.Run("of our client, when it fails", func(t *testing.T) {
		withHub(t, func(t *testing.T, s *setup) {
			s.work(core.Card{ID: "fam"}, acpclient.WorkOptions{}, func(context.Context, core.Request, func(core.Body) error) error {
				return core.NewFault(core.CodeInternal, "no")
			})
			kit := s.peer("kit")
			kit.send(silent)
			kit.expect(wire.KindAck)
			s.until(func() bool { a, _ := s.hub.Agent(core.Principal{Operator: true}, "fam"); return a.Load.Active == 0 }, "it has room again")
		})
	})
}

func TestAnUrgentDelegateOvertakesTheQueueOfItsAgent(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		doer, kit := s.plainAgent("doer", core.Card{}), s.peer("kit")
		for _, c := range []struct{ id, priority string }{{"runs", "normal"}, {"waits", "normal"}, {"hurry", "urgent"}} {
			kit.send(`{"id":"%s","to":"doer","kind":"delegate","payload":{"task":"%s","priority":"%s"}}`, c.id, c.id, c.priority)
			kit.expect(wire.KindAck)
		}
		for _, want := range []string{"runs", "hurry", "waits"} {
			task := s.assigned(doer)
			if got := task.Request().Content; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			s.report(doer, task, core.Done{})
			s.nextBatch(doer) // the end that it reported
		}
	})
}

func TestAResultHasAShortNameOfItsTask(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		doer, fam, kit := s.plainAgent("doer", core.Card{}), s.agent("fam", `{}`), s.peer("kit")
		kit.send(`{"id":"d1","to":"doer","kind":"delegate","payload":{"task":"first line\nand %s"}}`, strings.Repeat("x", 1000))
		kit.expect(wire.KindAck)
		s.report(doer, s.assigned(doer), core.Done{Text: "done"})
		if got := expect[wire.Result](kit, wire.KindResult, "d1").TaskRef; got != "first line ..." {
			t.Errorf("task_ref: got %q, want the first line", got)
		}
		const result = `"payload":{"status":"completed","outcome":"done"}`
		for _, id := range []string{"d2", "d3"} {
			kit.send(`{"id":"%s","to":"fam","kind":"delegate","payload":{"task":"do it"}}`, id)
			kit.expect(wire.KindAck)
			fam.expect(wire.KindDelegate)
			if id == "d3" {
				time.Sleep(time.Minute) // sent envelopes now count as received
				kit.disconnect()
			}
			fam.send(`{"id":"r%s","kind":"result","ref":"%s",`+result+`}`, id, id)
			if id == "d2" {
				if got := string(kit.expect(wire.KindResult).Payload); got != `{"status":"completed","outcome":"done"}` {
					t.Errorf("from one ACP peer to another: got %s, want it unchanged", got)
				}
			}
		}
		kit = s.peer("kit")
		if got := expect[wire.Result](kit, wire.KindResult, "d3"); got.TaskRef != "do it" {
			t.Errorf("late, from one ACP peer to another: got %+v, want the name of the task", got)
		}
	})
}

func TestAResultGoesToTheConnectedConnection(t *testing.T) {
	const delegate = `{"id":"d1","to":"doer","kind":"delegate","payload":{"task":"do it"}}`
	for name, after := range map[string]bool{"that is there at the end": false, "that comes after the end": true} {
		t.Run(name, func(t *testing.T) {
			withHub(t, func(t *testing.T, s *setup) {
				x := acp.NewHTTP(s.hub, acp.HTTPOptions{Session: acp.Options{Peers: s.peers}})
				defer x.Close()
				doer := s.plainAgent("doer", core.Card{})
				if w := serve(x, "POST", "kit", delegate); w.Code != 200 {
					t.Fatalf("POST: got %d, want 200", w.Code)
				}
				task := s.assigned(doer)
				if after {
					s.report(doer, task, core.Done{Text: "done"})
					synctest.Wait()
				}
				kit := s.peer("kit")
				if !after {
					s.report(doer, task, core.Done{Text: "done"})
				}
				if got := expect[wire.Result](kit, wire.KindResult, "d1"); got.Outcome != "done" {
					t.Errorf("result: got %+v, want done", got)
				}
				kit.expectNothing()
				if got := waiting(x, "kit"); len(got) > 0 {
					t.Errorf("over HTTP: got %q waiting, want none", got)
				}
			})
		})
	}
}

func TestDiscoverOfAnACPAgentReturnsAllItsMembers(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		fam := s.agent("fam", `{"agent_name":"Fam","domains":["family"],"extensions":["progress"],"mood":{"b": 1, "a": 2},"languages":["en"],"max_concurrent_tasks":2}`)
		conn, ended := s.connect(acp.Options{AgentID: "small", MaxEnvelopeBytes: 1 << 10})
		kit, small := s.peer("kit"), &peer{setup: s, conn: conn, ended: ended, name: "small"}
		small.expect(wire.KindDiscover)
		for i, want := range []string{
			`{"agent_name":"Fam","domains":["family"],"channels":[],"tools":[],"max_concurrent_tasks":2,"extensions":["progress"],"languages":["en"],"mood":{"b": 1, "a": 2}}`,
			`{"agent_name":"Fam","domains":[],"channels":[],"tools":[],"max_concurrent_tasks":0}`,
			`{"agent_name":"Fam","domains":[],"channels":[],"tools":[],"max_concurrent_tasks":1}`,
		} {
			kit.send(`{"id":"d%d","to":"fam","kind":"discover"}`, i)
			if got := string(kit.expect(wire.KindCapabilities).Payload); i < 2 && got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			small.send(`{"id":"d%d","to":"fam","kind":"discover"}`, i)
			if got := string(small.expect(wire.KindCapabilities).Payload); got != want {
				t.Errorf("small envelopes: got  %s\nwant %s", got, want)
			}
			next := []string{`"max_concurrent_tasks":0`, `"novel":"` + strings.Repeat("x", 1<<10) + `"`, `"domains":[]`}[i]
			fam.send(`{"id":"c%d","kind":"capabilities","payload":{"agent_name":"Fam",%s}}`, i, next)
			synctest.Wait()
		}
	})
}

func TestDiscoverOfTheHubIsNarrowedToADomainAndFollowsEveryChange(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		s.plainAgent("cal", core.Card{Domains: []string{"family.calendar"}})
		s.plainAgent("work", core.Card{Domains: []string{"work"}})
		fam, kit := s.agent("fam", `{"domains":["family"],"tools":["a"]}`), s.peer("kit")
		asks := 0
		want := func(domain string, want ...string) {
			t.Helper()
			asks++
			id := strings.Repeat("i", asks)
			kit.send(`{"id":"%s","kind":"discover","payload":{"domain":"%s"}}`, id, domain)
			var got []string
			for _, a := range expect[wire.Capabilities](kit, wire.KindCapabilities, id).Agents {
				got = append(got, string(a.ID))
			}
			if strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("%q: got %v, want %v", domain, got, want)
			}
		}
		want("", "cal", "fam", "work")
		want("family", "cal", "fam")
		want("family.calendar", "cal", "fam")
		want("family.school", "fam")
		want("garden")
		fam.send(`{"id":"c2","kind":"capabilities","payload":{"domains":["garden"],"tools":["b"]}}`)
		synctest.Wait()
		want("garden.roses", "fam")
		want("family.school")
		kit.send(`{"id":"one","to":"fam","kind":"discover"}`)
		if got := expect[wire.Capabilities](kit, wire.KindCapabilities, "one"); got.Tools[0] != "b" {
			t.Errorf("one agent: got %+v, want its last capabilities", got)
		}
		fam.expectNothing() // the hub answers for it
		kit.send(`{"id":"bad","kind":"discover","payload":{"domain":"a..b"}}`)
		kit.refused("bad", wire.CodeInvalidEnvelope, "a..b")
	})
}
