package parallax_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
)

func TestAnAgentRegistersAsThePageShows(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.connect(parallax.Options{AgentID: "agent_abc123", ConnectionID: "conn_1"})
		p.send(string(pageSamples(t)["register"]))
		m := p.receive(wire.TypeRegistered)
		if m.ID != "msg_001" {
			t.Errorf("id: got %q, want that of the register", m.ID)
		}
		want := wire.Registered{
			AgentID: "agent_abc123", ConnectionID: "conn_1", Capabilities: []string{"classification", "analysis"},
			Config: wire.RegisteredConfig{HeartbeatInterval: 10000, TaskTimeout: 30000, MaxConcurrentTasks: 5},
		}
		if diff := cmp.Diff(want, decode[wire.Registered](p, m)); diff != "" {
			t.Errorf("registered differs (-want +got):\n%s", diff)
		}
		a, here := s.hub.Agent(core.Principal{Operator: true}, "agent_abc123")
		if !here || a.Name != "my-agent" || a.Model != "gpt-4" || a.Dialect != "parallax" || a.MaxConcurrent != 5 || string(a.Metadata["version"]) != `"1.0.0"` {
			t.Errorf("card: got %+v, want that of the register", a.Card)
		}
		if !a.Features.Has(core.FeatureCancellation) || a.Features.Has(core.FeatureStreaming) || a.Features.Has(core.FeatureInjection) || a.Features.Has(core.FeatureNotices) {
			t.Errorf("features: got %v, want cancellation, and neither streaming, injection nor notices", a.Features.Names())
		}
		if a.Principal.ID != "agent_abc123" || a.Principal.Authenticated {
			t.Errorf("principal: got %+v, want the agent's id, not authenticated", a.Principal)
		}
	})
}

func TestAnAgentWithoutAnIDGetsOne(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.connect(parallax.Options{Capabilities: []string{"from-header"}})
		p.send(`{"type":"register","id":"1","payload":{"capabilities":[]}}`)
		got := decode[wire.Registered](p, p.receive(wire.TypeRegistered))
		if !strings.HasPrefix(got.AgentID, "agent_") || !cmp.Equal(got.Capabilities, []string{"from-header"}) || got.Config.MaxConcurrentTasks != 1 {
			t.Errorf("got %+v, want a made id, the capabilities of the header, and one task at a time", got)
		}
		if _, here := s.hub.Agent(core.Principal{Operator: true}, core.AgentID(got.AgentID)); !here {
			t.Errorf("agent %s: got none, want it registered", got.AgentID)
		}
	})
}

func TestHeaderAndPayloadThatDisagreeOnTheIDAreRefused(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.connect(parallax.Options{AgentID: "one"})
		p.send(`{"type":"register","id":"r","payload":{"agentId":"two","capabilities":[]}}`)
		m, r := p.expectError(wire.CodeInvalidMessage)
		if m.ID != "r" || r.Fatal {
			t.Errorf("got id %q and %+v, want the register's id and not fatal", m.ID, r)
		}
		p.send(`{"type":"register","id":"r","payload":{"agentId":"one","capabilities":[]}}`)
		p.receive(wire.TypeRegistered)
	})
}

func TestAnAuthenticatedAgentIsItsPrincipalUnlessItNamesItself(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.connect(parallax.Options{Principal: core.Principal{ID: "alice", Authenticated: true}})
		p.send(`{"type":"register","id":"r","payload":{"capabilities":[]}}`)
		if got := decode[wire.Registered](p, p.receive(wire.TypeRegistered)).AgentID; got != "alice" {
			t.Errorf("id: got %s, want alice", got)
		}
		if a, _ := s.hub.Agent(core.Principal{Operator: true}, "alice"); !a.Principal.Authenticated || a.Principal.Dialect != "parallax" {
			t.Errorf("principal: got %+v, want the authenticated one of this dialect", a.Principal)
		}
	})
}

func TestATakenIDIsRefused(t *testing.T) {
	withHub(t, func(s *setup) {
		s.registered(parallax.Options{AgentID: "a"}, `{"capabilities":[]}`).discard()
		p := s.connect(parallax.Options{AgentID: "a"})
		p.send(`{"type":"register","id":"r","payload":{"capabilities":[]}}`)
		if _, r := p.expectError(wire.CodeDuplicateName); !r.Fatal {
			t.Errorf("got %+v, want it fatal", r)
		}
		if r := p.waitClosed(); r.Code != 4409 {
			t.Errorf("closed: got %+v, want code %d", r, 4409)
		}
		if _, here := s.hub.Agent(core.Principal{Operator: true}, "a"); !here {
			t.Error("the owner of the id: got none, want it registered")
		}
	})
}

func TestASecondRegisterChangesTheCard(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.registered(parallax.Options{AgentID: "a"}, `{"capabilities":["x"]}`)
		p.send(`{"type":"register","id":"again","payload":{"capabilities":["y"],"config":{"maxConcurrentTasks":2}}}`)
		if m := p.receive(wire.TypeRegistered); m.ID != "again" {
			t.Errorf("id: got %q, want again", m.ID)
		}
		if a, _ := s.hub.Agent(core.Principal{Operator: true}, "a"); !cmp.Equal(a.Capabilities, []string{"y"}) || a.MaxConcurrent != 2 {
			t.Errorf("card: got %+v, want the second one", a.Card)
		}
		p.send(`{"type":"register","id":"other","payload":{"agentId":"b","capabilities":[]}}`)
		p.expectError(wire.CodeInvalidMessage)
	})
}

func TestAConnectionWithoutRegisterIsClosed(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.connect(parallax.Options{})
		start := time.Now()
		if _, r := p.expectError(wire.CodeRegisterTimeout); !r.Fatal {
			t.Errorf("got %+v, want it fatal", r)
		}
		if r := p.waitClosed(); r.Code != 4408 || time.Since(start) != wire.RegisterTimeout {
			t.Errorf("closed: got %+v after %v, want code %d after %v", r, time.Since(start), 4408, wire.RegisterTimeout)
		}
	})
}

func TestMessagesBeforeRegisterAreRefused(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.connect(parallax.Options{})
		p.send(`{"type":"heartbeat","id":"h","payload":{"status":"healthy","activeTasks":0}}`)
		if m, r := p.expectError(wire.CodeNotRegistered); m.ID != "h" || r.Fatal {
			t.Errorf("got id %q and %+v, want that of the heartbeat and not fatal", m.ID, r)
		}
		p.send(`{"type":"register","id":"r","payload":{"capabilities":[]}}`)
		p.receive(wire.TypeRegistered)
	})
}

func TestAnInvalidFrameLeavesTheConnectionOpen(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.registered(parallax.Options{AgentID: "a"}, `{"capabilities":[]}`)
		for _, frame := range []string{"\x00\xff", `{"type":"heartbeat","id":"x","payload":{"a":1,"a":2}}`, `{"type":"foo","id":"x","payload":{}}`, `{"type":"registered","id":"x","payload":{"agentId":"b"}}`} {
			p.send(frame)
			if _, r := p.expectError(wire.CodeInvalidMessage); r.Fatal {
				t.Errorf("%q: got %+v, want it not fatal", frame, r)
			}
		}
		p.send(`{"type":"heartbeat","id":"h","payload":{}}`)
		if m := p.receive(wire.TypeHeartbeatAck); m.ID != "h" {
			t.Errorf("ack: got id %q, want h", m.ID)
		}
	})
}

func TestATooLargeMessageLeavesTheConnectionOpen(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.registered(parallax.Options{AgentID: "a", MaxMessageBytes: 1000}, `{"capabilities":[]}`)
		p.send(`{"type":"heartbeat","id":"h","payload":{"status":"` + strings.Repeat("x", 1000) + `"}}`)
		if _, r := p.expectError(wire.CodeMessageTooLarge); !strings.Contains(r.Message, "limit is 1000") {
			t.Errorf("got %q, want one that tells the limit", r.Message)
		}
		p.send(`{"type":"heartbeat","id":"h","payload":{}}`)
		p.receive(wire.TypeHeartbeatAck)
	})
}

func TestAFloodIsThrottledWithoutLoss(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.registered(parallax.Options{AgentID: "a"}, `{"capabilities":[]}`)
		start := time.Now()
		go func() {
			for range 350 {
				_ = p.conn.Send(s.Context(), []byte(`{"type":"heartbeat","id":"h","payload":{}}`))
			}
		}()
		acks, warned := 0, 0
		for acks < 350 {
			frame, err := p.conn.Receive(s.Context())
			if err != nil {
				t.Fatal(err)
			}
			switch m, _ := wire.Decode(frame); m.Type {
			case wire.TypeHeartbeatAck:
				acks++
			case wire.TypeError:
				if r := decode[wire.Refusal](p, m); r.Code == wire.CodeRateLimited && !r.Fatal {
					warned++
				}
			}
		}
		// A burst of 100 at once, of which the register was one, then 100 a second.
		if took := time.Since(start).Round(time.Millisecond); took != 2510*time.Millisecond {
			t.Errorf("350 messages: took %v, want 2.51s", took)
		}
		if warned != 1 {
			t.Errorf("warnings: got %d, want one", warned)
		}
	})
}

func TestAnAgentWithoutHeartbeatsStaysConnected(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.registered(parallax.Options{AgentID: "a"}, `{"capabilities":[]}`)
		time.Sleep(time.Hour)
		p.expectNothing()
		if _, here := s.hub.Agent(core.Principal{Operator: true}, "a"); !here {
			t.Error("got no agent, want it registered")
		}
	})
}

func TestAnAgentWhoseHeartbeatsStopGetsNoTasksAndIsClosed(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.registered(parallax.Options{AgentID: "a"}, `{"capabilities":[]}`)
		beat := func() {
			p.send(`{"type":"heartbeat","id":"h","payload":{"status":"healthy","activeTasks":0}}`)
			if ack := decode[wire.HeartbeatAck](p, p.receive(wire.TypeHeartbeatAck)); ack.NextHeartbeat != 10000 {
				t.Errorf("next heartbeat: got %d, want 10000", ack.NextHeartbeat)
			}
		}
		state := func(want core.LoadState) {
			t.Helper()
			synctest.Wait()
			if a, _ := s.hub.Agent(core.Principal{Operator: true}, "a"); a.Load.State != want {
				t.Errorf("load: got %v, want %v", a.Load.State, want)
			}
		}
		beat()
		time.Sleep(20*time.Second - time.Millisecond)
		state(core.LoadIdle)
		time.Sleep(time.Millisecond)
		state(core.LoadOverloaded)
		time.Sleep(5 * time.Second)
		beat()
		state(core.LoadIdle)
		time.Sleep(30*time.Second - time.Millisecond)
		state(core.LoadOverloaded)
		time.Sleep(time.Millisecond)
		if r := <-p.ended; r.Cause != link.Unresponsive || r.Code != 4410 {
			t.Errorf("closed: got %+v, want unresponsive with code %d", r, 4410)
		}
		if _, here := s.hub.Agent(core.Principal{Operator: true}, "a"); here {
			t.Error("got the agent, want none")
		}
	})
}

func TestAnyMessageResetsTheWatchdog(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.registered(parallax.Options{AgentID: "a"}, `{"capabilities":[]}`)
		p.send(`{"type":"heartbeat","id":"h","payload":{}}`)
		p.receive(wire.TypeHeartbeatAck)
		for range 5 {
			time.Sleep(19 * time.Second)
			p.send(`{"type":"status_update","id":"u","payload":{"status":"busy"}}`)
		}
		synctest.Wait()
		if a, here := s.hub.Agent(core.Principal{Operator: true}, "a"); !here || a.Load.State != core.LoadBusy {
			t.Errorf("got %v and %v, want it here and busy", here, a.Load.State)
		}
	})
}

func TestAStatusUpdateStopsAndResumesTasks(t *testing.T) {
	for name, back := range map[string]string{
		"by a number":           `{"maxTasks":3}`,
		"by a status of health": `{"status":"healthy"}`,
	} {
		t.Run(name, func(t *testing.T) {
			withHub(t, func(s *setup) {
				p := s.registered(parallax.Options{AgentID: "a"}, `{"capabilities":["x"]}`)
				p.send(`{"type":"status_update","id":"u","payload":{"status":"busy","maxTasks":0,"reason":"At capacity"}}`)
				synctest.Wait()
				// A heartbeat between does not lift it.
				p.send(`{"type":"heartbeat","id":"h","payload":{"status":"healthy"}}`)
				p.receive(wire.TypeHeartbeatAck)
				a := s.requester()
				task := a.ask("a", "hello")
				p.expectNothing()
				p.send(`{"type":"status_update","id":"u","payload":` + back + `}`)
				assigned := decode[taskPayload](p, p.receive(wire.TypeTask))
				p.send(withIDs(`{"type":"task_result","id":"x","payload":{"taskId":"TASK","result":"hi"}}`, assigned))
				if got := a.answer(task); got.Text != "hi" {
					t.Errorf("answer: got %+v, want hi", got)
				}
			})
		})
	}
}

type taskPayload = wire.Task

func TestAStatusUpdateReplacesTheCapabilities(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.registered(parallax.Options{AgentID: "a"}, `{"capabilities":["classification","analysis"]}`)
		p.send(string(pageSamples(t)["status_update"]))
		synctest.Wait()
		a, _ := s.hub.Agent(core.Principal{Operator: true}, "a")
		if !cmp.Equal(a.Capabilities, []string{"classification"}) || a.Load.State != core.LoadBusy {
			t.Errorf("got %v, %v, want classification alone and busy", a.Capabilities, a.Load.State)
		}
		p.send(`{"type":"status_update","id":"u","payload":{"status":"purple"}}`)
		synctest.Wait()
		if a, _ := s.hub.Agent(core.Principal{Operator: true}, "a"); a.Load.State != core.LoadBusy {
			t.Errorf("an unknown status: got %v, want it to change nothing", a.Load.State)
		}
		s.expectCount("parallax.ignored.status", 1)
	})
}

func TestADisconnectEndsTheConnection(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.registered(parallax.Options{AgentID: "a"}, `{"capabilities":[]}`)
		p.send(string(pageSamples(t)["disconnect"]))
		if r := p.waitClosed(); r.Cause != link.Normal || !strings.Contains(r.Text, "shutdown") {
			t.Errorf("closed: got %+v, want normal, with the agent's reason", r)
		}
		if _, here := s.hub.Agent(core.Principal{Operator: true}, "a"); here {
			t.Error("got the agent, want none")
		}
	})
}

func TestAStoppingHubDisconnectsItsAgents(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.registered(parallax.Options{AgentID: "a"}, `{"capabilities":[]}`)
		go func() { _ = s.hub.Close(s.Context(), "maintenance") }()
		if d := decode[wire.Disconnect](p, p.receive(wire.TypeDisconnect)); d.Reason != "maintenance" || !d.Graceful {
			t.Errorf("got %+v, want maintenance, graceful", d)
		}
		if r := p.waitClosed(); r.Cause != link.ShuttingDown || r.Code != 1001 {
			t.Errorf("closed: got %+v, want shutting down with code 1001", r)
		}
	})
}
