package acp_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	acpclient "github.com/dragoman-hub/dragoman/adapters/acp/client"
	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// stubborn works until it is stopped.
func stubborn(ctx context.Context, _ core.Request, _ func(core.Body) error) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func TestAPingForAnACPAgentReachesItAndItsPongComesBackUnchanged(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		fam, kit := s.agent("fam", `{"agent_name":"Fam"}`), s.peer("kit")
		for _, to := range []string{"fam", alias("fam")} {
			kit.send(`{"id":"p-%s","to":"%s","kind":"ping","payload":{},"x":1}`, to, to)
			if got, want := string(fam.expect(wire.KindPing).Raw), `{"id":"p-`+to+`","to":"fam","kind":"ping","payload":{},"x":1,"from":"kit"}`; got != want {
				t.Errorf("the agent: got %s, want %s", got, want)
			}
			fam.send(`{"id":"o-%s","kind":"pong","ref":"p-%s","payload":{"status":"busy","uptime_secs":3600,"active_tasks":2,"mood":"fine"}}`, to, to)
			if got, want := string(kit.expect(wire.KindPong).Raw), `{"id":"o-`+to+`","kind":"pong","ref":"p-`+to+`","payload":{"status":"busy","uptime_secs":3600,"active_tasks":2,"mood":"fine"},"from":"fam","to":"kit"}`; got != want {
				t.Errorf("the sender of the ping: got %s, want %s", got, want)
			}
		}
		fam.send(`{"id":"o2","kind":"pong","ref":"p-fam","payload":{"status":"busy","uptime_secs":1,"active_tasks":0}}`)
		kit.expectNothing() // one is enough
		if a, _ := s.hub.Agent(core.Principal{Operator: true}, "fam"); a.Load.State != core.LoadBusy || a.Load.Active != 0 {
			t.Errorf("load: got %+v, want busy as declared, without a task", a.Load)
		}
	})
}

func TestAPingThatAnACPAgentDoesNotAnswerTimesOut(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		fam, kit := s.agent("fam", `{}`), s.peer("kit")
		kit.send(`{"id":"p1","to":"fam","kind":"ping"}`)
		fam.expect(wire.KindPing)
		time.Sleep(4 * time.Second)
		kit.expectNothing()
		time.Sleep(2 * time.Second)
		kit.refused("p1", wire.CodeTimeout, "")
		fam.expectNothing() // no cancel
		fam.send(`{"id":"o1","kind":"pong","ref":"p1","payload":{"status":"idle","uptime_secs":1,"active_tasks":0}}`)
		kit.expectNothing()
		kit.send(`{"id":"p2","to":"fam","kind":"ping"}`)
		fam.expect(wire.KindPing)
		fam.send(`{"id":"e1","kind":"error","ref":"p2","payload":{"code":"unknown_kind","message":"what?"}}`)
		kit.refused("p2", wire.CodeUnknownKind, "what?")
	})
}

func TestTheHubAnswersAPingForThePeerItselfOrForANonAgent(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		fam, quiet := s.agent("fam", `{"agent_name":"Fam"}`), s.peer("quiet")
		time.Sleep(time.Minute)
		for _, to := range []string{"fam", "quiet"} {
			fam.send(`{"id":"p-%s","to":"%s","kind":"ping"}`, to, to)
			if got := expect[wire.Pong](fam, wire.KindPong, "p-"+to); got.UptimeSecs != 60 || got.Status != "idle" {
				t.Errorf("%s: got %+v, want idle for a minute", to, got)
			}
		}
		quiet.expectNothing()
		if _, listed := s.hub.Agent(core.Principal{Operator: true}, "quiet"); listed {
			t.Error("got an agent after a ping, want none")
		}
	})
}

func TestAForwardedPingTakesNoSlotAndIsAnsweredByTheClient(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		s.work(core.Card{ID: "echo", Name: "Echo", MaxConcurrent: 1}, acpclient.WorkOptions{}, stubborn)
		kit := s.peer("kit")
		kit.send(`{"id":"q1","to":"echo","kind":"query","payload":{"question":"?"}}`)
		time.Sleep(10 * time.Second)
		kit.send(`{"id":"p1","to":"echo","kind":"ping"}`)
		if got, want := expect[wire.Pong](kit, wire.KindPong, "p1"), pong("busy", 10, 1, "Echo"); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		kit.send(`{"id":"c1","ref":"q1","kind":"cancel","payload":{}}`)
		kit.expect(wire.KindAck)
		kit.expect(wire.KindError)
	})
}

func TestAnOverloadedAgentGetsTasksAgainOnceItHasEndedOne(t *testing.T) {
	t.Run("our client", func(t *testing.T) {
		withHub(t, func(t *testing.T, s *setup) {
			s.work(core.Card{ID: "echo"}, acpclient.WorkOptions{}, func(_ context.Context, r core.Request, say func(core.Body) error) error {
				time.Sleep(time.Second)
				return say(core.Text{Text: r.Content})
			})
			kit := s.peer("kit")
			kit.send(`{"id":"q1","to":"echo","kind":"query","payload":{"question":"one"}}`)
			kit.send(`{"id":"p1","to":"echo","kind":"ping"}`)
			kit.expect(wire.KindPong)
			kit.expect(wire.KindResponse)
			kit.send(`{"id":"q2","to":"echo","kind":"query","payload":{"question":"two"}}`)
			if got := expect[wire.Response](kit, wire.KindResponse, "q2"); got.Summary != "two" {
				t.Errorf("got %+v, want two", got)
			}
		})
	})
	t.Run("an agent that reports overloaded", func(t *testing.T) {
		withHub(t, func(t *testing.T, s *setup) {
			fam, kit := s.agent("fam", `{"max_concurrent_tasks":2}`), s.peer("kit")
			for _, id := range []string{"q1", "q2"} {
				kit.send(`{"id":"%s","to":"fam","kind":"query","payload":{"question":"?"}}`, id)
				fam.expect(wire.KindQuery)
			}
			fam.send(`{"id":"o1","kind":"pong","payload":{"status":"overloaded","uptime_secs":1,"active_tasks":2}}`)
			kit.send(`{"id":"q3","to":"fam","kind":"query","payload":{"question":"?"}}`)
			fam.expectNothing()
			fam.send(`{"id":"r1","kind":"response","ref":"q1","payload":{"summary":"!"}}`)
			if e := fam.expect(wire.KindQuery); e.ID != "q3" {
				t.Errorf("got %s, want the queued one", e.Raw)
			}
		})
	})
}

func TestAPostOfAPingWaitsForTheAgentsAnswer(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		x := acp.NewHTTP(s.hub, acp.HTTPOptions{Session: acp.Options{Peers: s.peers}})
		defer x.Close()
		s.work(core.Card{ID: "echo"}, acpclient.WorkOptions{}, stubborn)
		if w := serve(x, "POST", "kit", `{"id":"p1","to":"echo","kind":"ping"}`); w.Code != 200 || !strings.Contains(w.Body.String(), `"kind":"pong"`) {
			t.Errorf("got %d %s, want 200 and a pong", w.Code, w.Body)
		}
		s.agent("mute", `{}`)
		if w := serve(x, "POST", "kit", `{"id":"p2","to":"mute","kind":"ping"}`); w.Code != 504 || !strings.Contains(w.Body.String(), "timeout") {
			t.Errorf("got %d %s, want 504 timeout", w.Code, w.Body)
		}
	})
}
