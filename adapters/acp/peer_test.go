package acp_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/roster"
)

func TestTheFirstFromIsTheIdentityOfTheConnection(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit := s.silentPeer("kit")
		kit.send(`{"id":"1","kind":"ping"}`)
		kit.refused("1", wire.CodeInvalidEnvelope, "X-Agent-Id")
		kit.send(`{"id":"2","from":"capability:x","kind":"ping"}`)
		kit.refused("2", wire.CodeInvalidEnvelope, "reserved")
		kit.send(`{"id":"3","from":"kit","kind":"ping"}`)
		kit.expect(wire.KindDiscover)
		expect[wire.Pong](kit, wire.KindPong, "3")
		kit.send(`{"id":"4","kind":"ping"}`)
		expect[wire.Pong](kit, wire.KindPong, "4")
		kit.send(`{"id":"5","from":"%s","kind":"ping"}`, alias("kit"))
		expect[wire.Pong](kit, wire.KindPong, "5")
		kit.send(`{"id":"6","from":"eve","kind":"ping"}`)
		kit.refused("6", wire.CodeNotAuthorized, `"kit"`)
		kit.send(`{"id":"7","from":"kit","kind":"ping"}`)
		expect[wire.Pong](kit, wire.KindPong, "7")
	})
}

func TestAStatedIdentityHoldsFromTheStart(t *testing.T) {
	for name, opts := range map[string]acp.Options{
		"stated":        {AgentID: "kit"},
		"authenticated": {Principal: core.Principal{ID: "kit", Authenticated: true}},
		"both":          {AgentID: "kit", Principal: core.Principal{ID: "alice", Authenticated: true, Credential: &core.Credential{Agents: []string{"kit"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			withHub(t, func(t *testing.T, s *setup) {
				conn, ended := s.connect(opts)
				kit := &peer{s, conn, ended, "kit"}
				kit.expect(wire.KindDiscover)
				kit.send(`{"id":"1","from":"eve","kind":"ping"}`)
				kit.refused("1", wire.CodeNotAuthorized, "kit")
				kit.send(`{"id":"2","kind":"capabilities"}`)
				s.until(func() bool { _, ok := s.hub.Agent(core.Principal{Operator: true}, "kit"); return ok }, "kit is an agent")
				a, _ := s.hub.Agent(core.Principal{Operator: true}, "kit")
				if want := cmpOr(opts.Principal.ID, "kit"); a.Principal.ID != want || a.Principal.Dialect != acp.Dialect {
					t.Errorf("principal: got %+v, want %s of acp", a.Principal, want)
				}
			})
		})
	}
	withHub(t, func(t *testing.T, s *setup) {
		conn, ended := s.connect(acp.Options{AgentID: "*"})
		a := &peer{s, conn, ended, "*"}
		a.refused("", wire.CodeInvalidEnvelope, "reserved")
		if r := <-ended; r.Cause != link.Unauthorized {
			t.Errorf("reason: got %s, want unauthorized", r.Error())
		}
	})
}

func TestACredentialSaysWhichAgentsAPeerMayBe(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		conn, ended := s.connect(acp.Options{AgentID: "kit", Principal: core.Principal{ID: "alice", Authenticated: true}})
		kit := &peer{s, conn, ended, "kit"}
		kit.expect(wire.KindDiscover)
		kit.send(`{"id":"1","kind":"capabilities"}`)
		kit.refused("1", wire.CodeNotAuthorized, `agents: ["kit"]`)
		kit.send(`{"id":"2","kind":"ping"}`)
		expect[wire.Pong](kit, wire.KindPong, "2")
		if _, here := s.hub.Agent(core.Principal{Operator: true}, "kit"); here {
			t.Error("kit is an agent, want none")
		}
	})
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func TestABadEnvelopeGetsAnErrorAndTheConnectionStaysOpen(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit := s.peer("kit")
		bob := s.peer("bob")
		for _, c := range []struct {
			say, ref string
			code     wire.Code
			about    string
		}{
			{`nonsense`, "", wire.CodeInvalidEnvelope, "byte 1"},
			{"\x00\xff", "", wire.CodeInvalidEnvelope, "byte"},
			{`{"id":"1","kind":"query","payload":{"question":"a","question":"b"}}`, "1", wire.CodeInvalidEnvelope, "question"},
			{`{"id":"1","kind":"query","payload":{"question":7}}`, "1", wire.CodeInvalidEnvelope, "payload.question"},
			{`{"id":"1","kind":"query","payload":` + strings.Repeat(`{"a":`, 100) + `1` + strings.Repeat(`}`, 100) + `}`, "1", wire.CodeInvalidEnvelope, "deep"},
			{`{"id":"1","kind":"query","payload":{"question":"` + strings.Repeat("x", wire.DefaultMaxEnvelopeBytes) + `"}}`, "1", wire.CodeTooLarge, "1000000"},
			{`{"v":3,"id":"1","kind":"ping"}`, "1", wire.CodeIncompatibleVersion, `"v":1`},
			{`{"id":"1","kind":"hello","payload":{"protocol_versions":[2,3]}}`, "1", wire.CodeIncompatibleVersion, "[1]"},
		} {
			kit.send("%s", c.say)
			kit.refused(c.ref, c.code, c.about)
		}
		kit.send(`{"id":"1","kind":"ping"}`)
		expect[wire.Pong](kit, wire.KindPong, "1")
		bob.expectNothing()
	})
}

func TestAnErrorIsNeverAnsweredWithAnError(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit := s.peer("kit")
		kit.send(`{"id":"1","kind":"error","ref":"x","payload":{"code":"internal","message":"oops"}}`)
		kit.send(`{"id":"2","kind":"error","ref":"x","payload":{}}`)
		kit.send(`{"id":"3","kind":"error","from":"eve","ref":"x","payload":{"code":"internal","message":"oops"}}`)
		kit.send(`{"id":"4","kind":"ack","ref":"x","payload":{"accepted":true}}`)
		kit.expectNothing()
	})
}

func TestHelloIsAnsweredWithVersionAndFeatures(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit := s.peer("kit")
		kit.send(`{"v":1,"id":"h1","from":"kit","to":"hub","kind":"hello","ref":null,"payload":{"protocol_versions":[1,2],"features":["delegate"]}}`)
		want := wire.Hello{
			ProtocolVersions: []int64{1}, SelectedVersion: 1, AgentName: "Dragoman",
			Features: []string{"delegate", "ack", "result", "cancel", "discover", "capabilities", "progress", "subscribe", "trace_context"},
		}
		if diff := cmp.Diff(want, expect[wire.Hello](kit, wire.KindHello, "h1")); diff != "" {
			t.Errorf("hello (-want +got):\n%s", diff)
		}
	})
}

func TestPingReturnsTheStateOfTheHubAndOfAnAgent(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit := s.peer("kit")
		shout := s.plainAgent("shout", core.Card{Name: "Shout", MaxConcurrent: 2})
		time.Sleep(90 * time.Second)
		kit.send(`{"id":"p1","kind":"ping"}`)
		if got, want := expect[wire.Pong](kit, wire.KindPong, "p1"), pong("idle", 90, 0, "Dragoman"); got != want {
			t.Errorf("the hub: got %+v, want %+v", got, want)
		}
		kit.send(`{"id":"q1","to":"shout","kind":"query","payload":{"question":"?"}}`)
		task := s.assigned(shout)
		for _, c := range []struct {
			to   string
			want wire.Pong
		}{
			{"hub", pong("busy", 90, 1, "Dragoman")},
			{"shout", pong("busy", 90, 1, "Shout")},
			{alias("shout"), pong("busy", 90, 1, "Shout")},
		} {
			kit.send(`{"id":"p-%s","to":"%s","kind":"ping"}`, c.to, c.to)
			if got := expect[wire.Pong](kit, wire.KindPong, "p-"+c.to); got != c.want {
				t.Errorf("%s: got %+v, want %+v", c.to, got, c.want)
			}
		}
		s.report(shout, task, core.Done{})
		kit.expect(wire.KindResponse)
		shout.SetLoad(core.LoadOverloaded)
		kit.send(`{"id":"p4","kind":"ping"}`)
		if got := expect[wire.Pong](kit, wire.KindPong, "p4"); got.Status != "overloaded" {
			t.Errorf("the hub when all agents are busy: got %+v, want overloaded", got)
		}
		kit.send(`{"id":"p5","to":"nobody","kind":"ping"}`)
		kit.refused("p5", wire.CodePeerNotFound, "nobody")
		kit.send(`{"id":"p6","to":"*","kind":"ping"}`)
		kit.refused("p6", wire.CodeInvalidEnvelope, "one agent")
	})
}

func TestDiscoverReturnsTheCapabilitiesOfOneAgentAndOfAll(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		s.plainAgent("shout", core.Card{Name: "Shout", Domains: []string{"text", "family"}, Capabilities: []string{"upper"}, Tools: []string{"tr"}, MaxConcurrent: 3, Model: "m"})
		s.agent("fam", `{"agent_name":"Fam","domains":["family"],"channels":["imessage"],"max_concurrent_tasks":4}`)
		kit := s.peer("kit")
		kit.send(`{"id":"1","to":"shout","kind":"discover"}`)
		want := wire.Capabilities{
			AgentName: "Shout", Domains: []string{"text", "family"}, Channels: []string{}, Tools: []string{"tr"}, MaxConcurrentTasks: new(int64(3)),
			Model: "m", Capabilities: []string{"upper"},
		}
		if diff := cmp.Diff(want, expect[wire.Capabilities](kit, wire.KindCapabilities, "1")); diff != "" {
			t.Errorf("one agent (-want +got):\n%s", diff)
		}
		kit.send(`{"id":"2","kind":"discover","payload":{}}`)
		want = wire.Capabilities{
			AgentName: "Dragoman", Domains: []string{"family", "text"}, Channels: []string{"imessage"}, Tools: []string{"tr"}, MaxConcurrentTasks: new(int64(7)),
			Capabilities: []string{"upper"}, Extensions: []string{"progress", "subscribe", "trace_context"},
			Agents: []wire.Listed{
				{ID: "fam", Hex: roster.Alias("fam"), AgentName: "Fam", Dialect: "acp", Domains: []string{"family"}, Channels: []string{"imessage"}, Status: "idle"},
				{ID: "shout", Hex: roster.Alias("shout"), AgentName: "Shout", Dialect: "plain", Domains: []string{"text", "family"}, Capabilities: []string{"upper"}, Model: "m", Status: "idle"},
			},
		}
		if diff := cmp.Diff(want, expect[wire.Capabilities](kit, wire.KindCapabilities, "2")); diff != "" {
			t.Errorf("the hub (-want +got):\n%s", diff)
		}
		kit.send(`{"id":"3","to":"nobody","kind":"discover"}`)
		kit.refused("3", wire.CodePeerNotFound, "nobody")
	})
}

func TestARepeatedEnvelopeIsIgnored(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		shout := s.plainAgent("shout", core.Card{MaxConcurrent: 9})
		kit, bob := s.peer("kit"), s.peer("bob")
		kit.send(`{"id":"1","to":"shout","kind":"query","payload":{"question":"?","deadline_ms":900000}}`)
		task := s.assigned(shout)
		kit.send(`{"id":"1","to":"shout","kind":"query","payload":{"question":"?","deadline_ms":900000}}`)
		bob.send(`{"id":"1","to":"shout","kind":"query","payload":{"question":"?"}}`)
		if other := s.assigned(shout); other.From().ID != "bob" {
			t.Errorf("got a second task from %s, want one from bob, whose id it is", other.From().ID)
		}
		s.counted("acp.duplicate", 1)
		s.report(shout, task, core.Done{Text: "!"})
		kit.expect(wire.KindResponse)
		kit.expectNothing()
		s.nextBatch(shout)
		time.Sleep(acp.KeepIDs)
		kit.send(`{"id":"1","kind":"ping"}`)
		expect[wire.Pong](kit, wire.KindPong, "1")
	})
}

func TestAnotherEnvelopeWithASeenIDIsAConflict(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		doer, kit := s.plainAgent("doer", core.Card{MaxConcurrent: 9}), s.peer("kit")
		x := acp.NewHTTP(s.hub, acp.HTTPOptions{Session: acp.Options{Peers: s.peers}})
		defer x.Close()
		kit.send(`{"id":"1","ts":1,"to":"doer","kind":"delegate","payload":{"task":"one"}}`)
		kit.expect(wire.KindAck)
		task := s.assigned(doer)
		kit.send(`{"id":"1","ts":2,"to":"doer","kind":"delegate","payload":{"task":"one"}}`) // is the same envelope
		kit.send(`{"id":"1","ts":3,"to":"doer","kind":"delegate","payload":{"task":"two"}}`)
		kit.refused("1", wire.CodeConflict, "fresh id")
		kit.send(`{"id":"1","to":"doer","kind":"notify","payload":{"topic":"a"}}`)
		kit.refused("1", wire.CodeConflict, "fresh id")
		for task, want := range map[string]int{"one": 200, "two": 409} {
			if w := serve(x, "POST", "kit", fmt.Sprintf(`{"id":"1","to":"doer","kind":"delegate","payload":{"task":"%s"}}`, task)); w.Code != want {
				t.Errorf("%s by POST: got %d %s, want %d", task, w.Code, w.Body, want)
			}
		}
		s.report(doer, task, core.Done{})
		kit.expect(wire.KindResult)
		if w := serve(x, "POST", "bob", `{"id":"1","to":"doer","kind":"delegate","payload":{"task":"three"}}`); w.Code != 200 {
			t.Errorf("of bob: got %d %s, want 200", w.Code, w.Body)
		}
		if w := serve(x, "POST", "bob", `{"id":"1","to":"doer","kind":"delegate","payload":{"task":"three"}}`); w.Code != 200 || !strings.Contains(w.Body.String(), `"ack"`) {
			t.Errorf("of bob again, after his first POST was closed: got %d %s, want another ack", w.Code, w.Body)
		}
	})
}

// refusingConn is a connection whose transport refuses the first message.
type refusingConn struct {
	link.Conn[[]byte, []byte]
	reject *link.Reject
}

func (g *refusingConn) Receive(ctx context.Context) ([]byte, error) {
	if r := g.reject; r != nil {
		g.reject = nil
		return nil, r
	}
	return g.Conn.Receive(ctx)
}

func TestAMessageRefusedByTheTransportGetsAnErrorAndTheConnectionStaysOpen(t *testing.T) {
	for cause, code := range map[link.Cause]wire.Code{link.TooLarge: wire.CodeTooLarge, link.Protocol: wire.CodeInvalidEnvelope} {
		withHub(t, func(t *testing.T, s *setup) {
			ours, theirs := pipe()
			ended := make(chan link.Reason, 1)
			go func() {
				conn := &refusingConn{ours, &link.Reject{Cause: cause, Text: "the message has 7 bytes, the limit is 5"}}
				ended <- acp.Serve(context.Background(), s.hub, conn, &acp.Options{Peers: s.peers})
			}()
			kit := &peer{s, theirs, ended, "kit"}
			kit.refused("", code, "the limit is 5")
			kit.send(`{"id":"1","from":"kit","kind":"ping"}`)
			kit.expect(wire.KindDiscover)
			kit.expect(wire.KindPong)
			kit.disconnect()
		})
	}
}

func TestARetryIsSentAsProgress(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		one, two := s.agent("one", `{"domains":["d"]}`), s.agent("two", `{"domains":["d"]}`)
		kit := s.peer("kit")
		kit.send(`{"id":"h","kind":"hello","payload":{"protocol_versions":[1],"features":["progress"]}}`)
		kit.expect(wire.KindHello)
		kit.send(`{"id":"d1","to":"domain:d","kind":"delegate","payload":{"task":"do"}}`)
		kit.expect(wire.KindAck)
		one.expect(wire.KindDelegate)
		one.send(`{"id":"e1","kind":"error","ref":"d1","payload":{"code":"overloaded","message":"later","retryable":true}}`)
		e := kit.expect(wire.KindProgress)
		_, body, err := e.Progress()
		if b, ok := body.(core.Retrying); !ok || err != nil || b.Agent != "one" || e.From != wire.HubID {
			t.Errorf("got %s (%v), want a retrying progress from the hub", e.Raw, err)
		}
		two.expect(wire.KindDelegate)
		two.send(`{"id":"a1","kind":"ack","ref":"d1","payload":{"accepted":true}}`)
		two.send(`{"id":"r1","kind":"result","ref":"d1","payload":{"status":"completed","outcome":"done"}}`)
		kit.expect(wire.KindResult)
		s.counted("acp.folded.accepted", 1)
	})
}
