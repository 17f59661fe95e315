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
	"github.com/dragoman-hub/dragoman/core/link"
)

func TestAResultThatComesLateReachesThePeerWhereverItIs(t *testing.T) {
	const delegate = `{"id":"d1","to":"doer","kind":"delegate","payload":{"task":"do it"}}`
	t.Run("back before the end", func(t *testing.T) {
		onStage(t, func(t *testing.T, s *stage) {
			doer := s.plainAgent("doer", core.Card{})
			kit := s.enter("kit")
			kit.say(delegate)
			kit.expect(wire.KindAck)
			task := s.assigned(doer)
			s.report(doer, task, core.Text{Text: "do"})
			kit.leave()
			kit = s.enter("kit")
			kit.say(delegate) // it was not sure; the hub is
			if got := expect[wire.Ack](kit, wire.KindAck, "d1"); !got.Accepted {
				t.Errorf("the delegate again: got %+v, want accepted", got)
			}
			s.report(doer, task, core.Text{Text: "ne"}, core.Done{})
			if got := expect[wire.Result](kit, wire.KindResult, "d1"); got.Outcome != "done" {
				t.Errorf("result: got %+v, want done", got)
			}
			kit.silent()
		})
	})
	t.Run("back after the end", func(t *testing.T) {
		onStage(t, func(t *testing.T, s *stage) {
			doer := s.plainAgent("doer", core.Card{})
			kit := s.enter("kit")
			kit.say(delegate)
			kit.expect(wire.KindAck)
			task := s.assigned(doer)
			kit.leave()
			s.report(doer, task, core.Done{Text: "done"})
			time.Sleep(acp.DefaultKeepResults - time.Second)
			eve := s.enter("eve")
			eve.silent()
			kit = s.enter("kit")
			if got := expect[wire.Result](kit, wire.KindResult, "d1"); got.Outcome != "done" {
				t.Errorf("result: got %+v, want done", got)
			}
		})
	})
	t.Run("back too late", func(t *testing.T) {
		onStage(t, func(t *testing.T, s *stage) {
			doer := s.plainAgent("doer", core.Card{})
			kit := s.enter("kit")
			kit.say(delegate)
			kit.expect(wire.KindAck)
			task := s.assigned(doer)
			kit.leave()
			s.report(doer, task, core.Done{Text: "done"})
			time.Sleep(acp.DefaultKeepResults + time.Second)
			kit = s.enter("kit")
			kit.silent()
			s.counted("acp.result.expired", 1)
		})
	})
	t.Run("cut off as it comes", func(t *testing.T) {
		onStage(t, func(t *testing.T, s *stage) {
			doer := s.plainAgent("doer", core.Card{})
			kit := s.enter("kit")
			kit.say(delegate)
			kit.expect(wire.KindAck)
			s.report(doer, s.assigned(doer), core.Done{Text: "done"})
			synctest.Wait() // it is on its way, and nobody reads it
			kit.leave()
			kit = s.enter("kit")
			if got := expect[wire.Result](kit, wire.KindResult, "d1"); got.Outcome != "done" {
				t.Errorf("result: got %+v, want done", got)
			}
			time.Sleep(2 * time.Minute) // now it is certain
			kit.leave()
			kit = s.enter("kit")
			kit.silent()
		})
	})
	t.Run("back before the lost connection is missed", func(t *testing.T) {
		onStage(t, func(t *testing.T, s *stage) {
			doer := s.plainAgent("doer", core.Card{})
			lost := s.enter("kit")
			lost.say(delegate)
			lost.expect(wire.KindAck)
			s.report(doer, s.assigned(doer), core.Done{Text: "done"})
			kit := s.enter("kit")
			lost.leave()
			if got := expect[wire.Result](kit, wire.KindResult, "d1"); got.Outcome != "done" {
				t.Errorf("result: got %+v, want done", got)
			}
		})
	})
	t.Run("not again to one that took its leave", func(t *testing.T) {
		onStage(t, func(t *testing.T, s *stage) {
			doer := s.plainAgent("doer", core.Card{})
			kit := s.enter("kit")
			kit.say(delegate)
			kit.expect(wire.KindAck)
			s.report(doer, s.assigned(doer), core.Done{Text: "done"})
			kit.expect(wire.KindResult)
			synctest.Wait() // the transport knows that it took it
			_ = kit.conn.Close(nilReason)
			<-kit.ended
			kit = s.enter("kit")
			kit.silent()
		})
	})
	t.Run("here by another connection", func(t *testing.T) {
		onStage(t, func(t *testing.T, s *stage) {
			doer := s.plainAgent("doer", core.Card{})
			kit, also := s.enter("kit"), s.enter("kit")
			kit.say(delegate)
			kit.expect(wire.KindAck)
			task := s.assigned(doer)
			kit.leave()
			s.report(doer, task, core.Done{Text: "done"})
			if got := expect[wire.Result](also, wire.KindResult, "d1"); got.Outcome != "done" {
				t.Errorf("result: got %+v, want done", got)
			}
		})
	})
}

func TestAnIDIsNotUsedAgainWhileWhatWasAskedUnderItRuns(t *testing.T) {
	const delegate = `{"id":"1","to":"doer","kind":"delegate","payload":{"task":"%s"}}`
	onStage(t, func(t *testing.T, s *stage) {
		doer := s.plainAgent("doer", core.Card{MaxConcurrent: 2})
		kit, also := s.enter("kit"), s.enter("kit")
		kit.say(delegate, "the first")
		kit.expect(wire.KindAck)
		first := s.assigned(doer)
		time.Sleep(acp.DefaultKeepIDs + time.Second) // nobody knows any more that it was seen
		for _, a := range []*actor{kit, also, kit} {
			a.say(delegate, "another")
			a.refused("1", wire.CodeConflict, "still")
		}
		s.report(doer, first, core.Done{Text: "done"})
		if got := expect[wire.Result](kit, wire.KindResult, "1"); got.Outcome != "done" {
			t.Errorf("result: got %+v, want that of the first", got)
		}
		also.say(delegate, "another")
		also.expect(wire.KindAck)
		s.news(doer) // how the first ended
		s.report(doer, s.assigned(doer), core.Done{})
		also.expect(wire.KindResult)
	})
}

func TestAQueryIsCancelledWhenItsAskerLeavesAndADelegateRunsOn(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		doer := s.plainAgent("doer", core.Card{MaxConcurrent: 2, Features: core.FeatureCancellation})
		kit := s.enter("kit")
		kit.say(`{"id":"q1","to":"doer","kind":"query","payload":{"question":"?"}}`)
		query := s.assigned(doer)
		kit.say(`{"id":"d1","to":"doer","kind":"delegate","payload":{"task":"!"}}`)
		delegate := s.assigned(doer)
		kit.leave()
		if b := s.news(doer); b.Task != query || b.Events[0].Body.Kind() != core.KindCancelRequested {
			t.Errorf("got %+v, want the query cancelled", b)
		}
		s.report(doer, query, core.Cancelled{})
		s.report(doer, delegate, core.Done{})
	})
}

func TestADelegateThatWantsNoReportRunsOnWhenItsSenderLeavesAndCanBeCancelled(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		doer := s.plainAgent("doer", core.Card{Features: core.FeatureCancellation})
		kit := s.enter("kit")
		kit.say(`{"id":"d1","to":"doer","kind":"delegate","payload":{"task":"do it","report_back":false}}`)
		kit.expect(wire.KindAck)
		task := s.assigned(doer)
		kit.leave()
		synctest.Wait()
		kit = s.enter("kit")
		kit.say(`{"id":"c1","kind":"cancel","ref":"d1","payload":{"reason":"rain"}}`)
		if got := expect[wire.Ack](kit, wire.KindAck, "c1"); !got.Accepted {
			t.Errorf("cancel: got %+v, want accepted", got)
		}
		if got, ok := s.news(doer).Events[0].Body.(core.CancelRequested); !ok || got.Reason != "rain" {
			t.Errorf("the agent: got %+v, want to be stopped because of the cancel, and not before", got)
		}
		s.report(doer, task, core.Cancelled{Reason: "rain"})
		kit.silent()
	})
}

func TestWhatAPeerAskedOnOneConnectionItSteersOnAnother(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		doer := s.plainAgent("doer", core.Card{Features: core.FeatureCancellation | core.FeatureInjection})
		kit, eve := s.enter("kit"), s.enter("eve")
		x := acp.NewHTTP(s.hub, acp.HTTPOptions{Session: acp.Options{Peers: s.peers}})
		defer x.Close()
		kit.say(`{"id":"d1","to":"doer","kind":"delegate","payload":{"task":"do it"}}`)
		kit.expect(wire.KindAck)
		task := s.assigned(doer)
		if w := serve(x, "POST", "kit", `{"id":"n1","kind":"notify","payload":{"topic":"dragoman.context","data":{"ref":"d1","content":"hurry"}}}`); w.Code != 202 {
			t.Errorf("context: got %d %s, want 202", w.Code, w.Body)
		}
		if in, ok := s.news(doer).Events[0].Body.(core.Injected); !ok || in.Content != "hurry" {
			t.Errorf("the agent: got %+v, want the context", in)
		}
		eve.say(`{"id":"c0","kind":"cancel","ref":"d1"}`)
		if got := expect[wire.Ack](eve, wire.KindAck, "c0"); got.Accepted {
			t.Errorf("a cancel by somebody else: got %+v, want not accepted", got)
		}
		if w := serve(x, "POST", "kit", `{"id":"c1","kind":"cancel","ref":"d1"}`); w.Code != 200 || !strings.Contains(w.Body.String(), `"accepted":true`) {
			t.Errorf("cancel: got %d %s, want 200 and accepted", w.Code, w.Body)
		}
		s.report(doer, task, core.Cancelled{})
		kit.expect(wire.KindResult)
		if w := serve(x, "POST", "kit", `{"id":"c2","kind":"cancel","ref":"d1"}`); w.Code != 200 || !strings.Contains(w.Body.String(), `"accepted":false`) {
			t.Errorf("cancel of what has ended: got %d %s, want 200 and not accepted", w.Code, w.Body)
		}
	})
}

func TestTheHubSaysWhenItIsStopping(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		kit := s.enter("kit")
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

func TestAfterTheEndOfItsInputAPeerStillGetsItsAnswers(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		in, peerIn := pipe()
		out, peerOut := pipe()
		s.employ(core.Card{ID: "echo"}, acpclient.WorkOptions{}, func(_ context.Context, r core.Request, say func(core.Body) error) error {
			time.Sleep(time.Second)
			return say(core.Text{Text: r.Content})
		})
		ended := make(chan link.Reason, 1)
		go func() {
			ended <- acp.Serve(context.Background(), s.hub, halves{in, out}, acp.Options{FinishAfterEOF: true, Peers: s.peers})
		}()
		for _, line := range []string{
			`{"id":"q1","from":"kit","to":"echo","kind":"query","payload":{"question":"one"}}`,
			`{"id":"d1","to":"echo","kind":"delegate","payload":{"task":"two"}}`,
		} {
			if err := peerIn.Send(s.Context(), []byte(line)); err != nil {
				t.Fatal(err)
			}
		}
		_ = peerIn.Close(nilReason)
		kit := &actor{stage: s, conn: peerOut, name: "kit"}
		kit.expect(wire.KindDiscover)
		kit.expect(wire.KindAck)
		if got := expect[wire.Response](kit, wire.KindResponse, "q1"); got.Summary != "one" {
			t.Errorf("got %+v, want one", got)
		}
		if got := expect[wire.Result](kit, wire.KindResult, "d1"); got.Outcome != "two" {
			t.Errorf("got %+v, want two", got)
		}
		if r := <-ended; r.Cause != link.Normal {
			t.Errorf("reason: got %s, want normal", r.Error())
		}
	})
}

// halves is a connection of two separate directions, as stdin and stdout are.
type halves struct {
	in, out link.Conn[[]byte, []byte]
}

func (h halves) Receive(ctx context.Context) ([]byte, error) { return h.in.Receive(ctx) }

func (h halves) Send(ctx context.Context, m []byte) error { return h.out.Send(ctx, m) }

func (h halves) Close(r link.Reason) error {
	_ = h.in.Close(r)
	return h.out.Close(r)
}
