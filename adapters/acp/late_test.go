package acp_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
)

func TestALateResultReachesThePeerOnAnyConnection(t *testing.T) {
	const delegate = `{"id":"d1","to":"doer","kind":"delegate","payload":{"task":"do it"}}`
	t.Run("reconnected before the end", func(t *testing.T) {
		withHub(t, func(t *testing.T, s *setup) {
			doer := s.plainAgent("doer", core.Card{})
			kit := s.peer("kit")
			kit.send(delegate)
			kit.expect(wire.KindAck)
			task := s.assigned(doer)
			s.report(doer, task, core.Text{Text: "do"})
			kit.disconnect()
			kit = s.peer("kit")
			kit.send(delegate) // the peer sends it again
			if got := expect[wire.Ack](kit, wire.KindAck, "d1"); !got.Accepted {
				t.Errorf("the delegate again: got %+v, want accepted", got)
			}
			s.report(doer, task, core.Text{Text: "ne"}, core.Done{})
			if got := expect[wire.Result](kit, wire.KindResult, "d1"); got.Outcome != "done" {
				t.Errorf("result: got %+v, want done", got)
			}
			kit.expectNothing()
		})
	})
	t.Run("reconnected after the end", func(t *testing.T) {
		withHub(t, func(t *testing.T, s *setup) {
			doer := s.plainAgent("doer", core.Card{})
			kit := s.peer("kit")
			kit.send(delegate)
			kit.expect(wire.KindAck)
			task := s.assigned(doer)
			kit.disconnect()
			s.report(doer, task, core.Done{Text: "done"})
			time.Sleep(acp.DefaultKeepResults - time.Second)
			eve := s.peer("eve")
			eve.expectNothing()
			kit = s.peer("kit")
			if got := expect[wire.Result](kit, wire.KindResult, "d1"); got.Outcome != "done" {
				t.Errorf("result: got %+v, want done", got)
			}
		})
	})
	t.Run("reconnected too late", func(t *testing.T) {
		withHub(t, func(t *testing.T, s *setup) {
			doer := s.plainAgent("doer", core.Card{})
			kit := s.peer("kit")
			kit.send(delegate)
			kit.expect(wire.KindAck)
			task := s.assigned(doer)
			kit.disconnect()
			s.report(doer, task, core.Done{Text: "done"})
			time.Sleep(acp.DefaultKeepResults + time.Second)
			kit = s.peer("kit")
			kit.expectNothing()
			s.counted("acp.result.expired", 1)
		})
	})
	t.Run("disconnected as the result arrives", func(t *testing.T) {
		withHub(t, func(t *testing.T, s *setup) {
			doer := s.plainAgent("doer", core.Card{})
			kit := s.peer("kit")
			kit.send(delegate)
			kit.expect(wire.KindAck)
			s.report(doer, s.assigned(doer), core.Done{Text: "done"})
			synctest.Wait() // it is sent and not read
			kit.disconnect()
			kit = s.peer("kit")
			if got := expect[wire.Result](kit, wire.KindResult, "d1"); got.Outcome != "done" {
				t.Errorf("result: got %+v, want done", got)
			}
			time.Sleep(2 * time.Minute) // sent envelopes now count as received
			kit.disconnect()
			kit = s.peer("kit")
			kit.expectNothing()
		})
	})
	t.Run("reconnected before the loss is noticed", func(t *testing.T) {
		withHub(t, func(t *testing.T, s *setup) {
			doer := s.plainAgent("doer", core.Card{})
			lost := s.peer("kit")
			lost.send(delegate)
			lost.expect(wire.KindAck)
			s.report(doer, s.assigned(doer), core.Done{Text: "done"})
			kit := s.peer("kit")
			lost.disconnect()
			if got := expect[wire.Result](kit, wire.KindResult, "d1"); got.Outcome != "done" {
				t.Errorf("result: got %+v, want done", got)
			}
		})
	})
	t.Run("not after a clean disconnect", func(t *testing.T) {
		withHub(t, func(t *testing.T, s *setup) {
			doer := s.plainAgent("doer", core.Card{})
			kit := s.peer("kit")
			kit.send(delegate)
			kit.expect(wire.KindAck)
			s.report(doer, s.assigned(doer), core.Done{Text: "done"})
			kit.expect(wire.KindResult)
			synctest.Wait() // the transport has accepted it
			_ = kit.conn.Close(nilReason)
			<-kit.ended
			kit = s.peer("kit")
			kit.expectNothing()
		})
	})
	t.Run("connected by another connection", func(t *testing.T) {
		withHub(t, func(t *testing.T, s *setup) {
			doer := s.plainAgent("doer", core.Card{})
			kit, also := s.peer("kit"), s.peer("kit")
			kit.send(delegate)
			kit.expect(wire.KindAck)
			task := s.assigned(doer)
			kit.disconnect()
			s.report(doer, task, core.Done{Text: "done"})
			if got := expect[wire.Result](also, wire.KindResult, "d1"); got.Outcome != "done" {
				t.Errorf("result: got %+v, want done", got)
			}
		})
	})
}

func TestAnIDIsNotReusedWhileItsRequestRuns(t *testing.T) {
	const delegate = `{"id":"1","to":"doer","kind":"delegate","payload":{"task":"%s"}}`
	withHub(t, func(t *testing.T, s *setup) {
		doer := s.plainAgent("doer", core.Card{MaxConcurrent: 2})
		kit, also := s.peer("kit"), s.peer("kit")
		kit.send(delegate, "the first")
		kit.expect(wire.KindAck)
		first := s.assigned(doer)
		time.Sleep(acp.KeepIDs + time.Second) // the id is forgotten
		for _, a := range []*peer{kit, also, kit} {
			a.send(delegate, "another")
			a.refused("1", wire.CodeConflict, "still")
		}
		s.report(doer, first, core.Done{Text: "done"})
		if got := expect[wire.Result](kit, wire.KindResult, "1"); got.Outcome != "done" {
			t.Errorf("result: got %+v, want that of the first", got)
		}
		also.send(delegate, "another")
		also.expect(wire.KindAck)
		s.nextBatch(doer) // the end of the first
		s.report(doer, s.assigned(doer), core.Done{})
		also.expect(wire.KindResult)
	})
}

func TestALeavingRequesterCancelsItsQueriesAndNotItsDelegates(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		doer := s.plainAgent("doer", core.Card{MaxConcurrent: 2, Features: core.FeatureCancellation})
		kit := s.peer("kit")
		kit.send(`{"id":"q1","to":"doer","kind":"query","payload":{"question":"?"}}`)
		query := s.assigned(doer)
		kit.send(`{"id":"d1","to":"doer","kind":"delegate","payload":{"task":"!"}}`)
		delegate := s.assigned(doer)
		kit.disconnect()
		if b := s.nextBatch(doer); b.Task != query || b.Events[0].Body.Kind() != core.KindCancelRequested {
			t.Errorf("got %+v, want the query cancelled", b)
		}
		s.report(doer, query, core.Cancelled{})
		s.report(doer, delegate, core.Done{})
	})
}

func TestADelegateWithoutReportOutlivesItsSenderAndCanBeCancelled(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		doer := s.plainAgent("doer", core.Card{Features: core.FeatureCancellation})
		kit := s.peer("kit")
		kit.send(`{"id":"d1","to":"doer","kind":"delegate","payload":{"task":"do it","report_back":false}}`)
		kit.expect(wire.KindAck)
		task := s.assigned(doer)
		kit.disconnect()
		synctest.Wait()
		kit = s.peer("kit")
		kit.send(`{"id":"c1","kind":"cancel","ref":"d1","payload":{"reason":"rain"}}`)
		if got := expect[wire.Ack](kit, wire.KindAck, "c1"); !got.Accepted {
			t.Errorf("cancel: got %+v, want accepted", got)
		}
		if got, ok := s.nextBatch(doer).Events[0].Body.(core.CancelRequested); !ok || got.Reason != "rain" {
			t.Errorf("the agent: got %+v, want it cancelled by the cancel and not before", got)
		}
		s.report(doer, task, core.Cancelled{Reason: "rain"})
		kit.expectNothing()
	})
}

func TestAPeerSteersARequestFromAnotherConnection(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		doer := s.plainAgent("doer", core.Card{Features: core.FeatureCancellation | core.FeatureInjection})
		kit, eve := s.peer("kit"), s.peer("eve")
		x := acp.NewHTTP(s.hub, acp.HTTPOptions{Session: acp.Options{Peers: s.peers}})
		defer x.Close()
		kit.send(`{"id":"d1","to":"doer","kind":"delegate","payload":{"task":"do it"}}`)
		kit.expect(wire.KindAck)
		task := s.assigned(doer)
		if w := serve(x, "POST", "kit", `{"id":"n1","kind":"notify","payload":{"topic":"dragoman.context","data":{"ref":"d1","content":"hurry"}}}`); w.Code != 202 {
			t.Errorf("context: got %d %s, want 202", w.Code, w.Body)
		}
		if in, ok := s.nextBatch(doer).Events[0].Body.(core.Injected); !ok || in.Content != "hurry" {
			t.Errorf("the agent: got %+v, want the context", in)
		}
		eve.send(`{"id":"c0","kind":"cancel","ref":"d1"}`)
		if got := expect[wire.Ack](eve, wire.KindAck, "c0"); got.Accepted {
			t.Errorf("a cancel by another peer: got %+v, want not accepted", got)
		}
		if w := serve(x, "POST", "kit", `{"id":"c1","kind":"cancel","ref":"d1"}`); w.Code != 200 || !strings.Contains(w.Body.String(), `"accepted":true`) {
			t.Errorf("cancel: got %d %s, want 200 and accepted", w.Code, w.Body)
		}
		s.report(doer, task, core.Cancelled{})
		kit.expect(wire.KindResult)
		if w := serve(x, "POST", "kit", `{"id":"c2","kind":"cancel","ref":"d1"}`); w.Code != 200 || !strings.Contains(w.Body.String(), `"accepted":false`) {
			t.Errorf("cancel of an ended task: got %d %s, want 200 and not accepted", w.Code, w.Body)
		}
	})
}

func TestAStoppingHubInformsItsPeers(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit := s.peer("kit")
		stopped := make(chan error, 1)
		go func() { stopped <- s.hub.Close(context.Background(), "upgrade") }()
		e := kit.expect(wire.KindNotify)
		if want := `{"topic":"dragoman.shutdown","data":{"reason":"upgrade"},"importance":"high"}`; string(e.Payload) != want {
			t.Errorf("got %s, want %s", e.Payload, want)
		}
		if err := <-stopped; err != nil {
			t.Errorf("Close: got %v, want no error", err)
		}
		if r := <-kit.ended; r.Cause != link.ShuttingDown {
			t.Errorf("reason: got %s, want shutting down", r.Error())
		}
	})
}
