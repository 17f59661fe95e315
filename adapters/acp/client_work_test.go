package acp_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/acp/client"
	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

// playedHub is a hub played by the test, which writes every envelope to the agent.
type playedHub struct {
	*testing.T
	conn *coretest.End[[]byte, []byte]
	done chan error
}

// workFor runs Work against a hub that the test plays, in a bubble of fake time.
func workFor(t *testing.T, card core.Card, handle core.Handler, test func(t *testing.T, h *playedHub)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := coretest.Pipe[[]byte, []byte](64)
		h := &playedHub{t, ours, make(chan error, 1)}
		go func() { h.done <- client.Work(context.Background(), theirs, card, handle, client.WorkOptions{}) }()
		test(t, h)
		_ = ours.Close(link.Reason{Cause: link.Normal})
		if err := <-h.done; err != nil {
			t.Errorf("Work: got %v, want no error after a normal close", err)
		}
	})
}

// say sends an envelope verbatim.
func (h *playedHub) say(text string) {
	h.Helper()
	if err := h.conn.Send(h.Context(), []byte(text)); err != nil {
		h.Fatalf("sending %s: got %v, want no error", text, err)
	}
}

// expect reads the next envelope, of the kind and with the ref, into payload.
func (h *playedHub) expect(kind wire.Kind, ref string, payload any) wire.Envelope {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), time.Hour)
	defer cancel()
	raw, err := h.conn.Receive(ctx)
	if err != nil {
		h.Fatalf("waiting for a %s: got %v, want one", kind, err)
	}
	e, err := wire.Decode(raw, 1<<30)
	if err == nil {
		err = e.Check()
	}
	if err == nil {
		err = e.Read(payload)
	}
	if err != nil || e.Kind != kind || ref != "" && e.Ref != ref {
		h.Fatalf("received %s: got error %v, want a %s that answers %q", raw, err, kind, ref)
	}
	return e
}

// expectNothing checks that no envelope comes once all goroutines are idle.
func (h *playedHub) expectNothing() {
	h.Helper()
	synctest.Wait()
	ctx, cancel := context.WithTimeout(h.Context(), time.Nanosecond)
	defer cancel()
	if raw, err := h.conn.Receive(ctx); err == nil {
		h.Errorf("received %s, want nothing more", raw)
	}
}

// refused checks that the next envelope is an error with the ref.
func (h *playedHub) refused(ref string, code wire.Code, about string) {
	h.Helper()
	var got wire.Error
	if h.expect(wire.KindError, ref, &got); got.Code != code || !strings.Contains(got.Message, about) {
		h.Errorf("got %v, want %s with a message about %q", &got, code, about)
	}
}

func TestAnAgentAnswersPingDiscoverAndUnknownKinds(t *testing.T) {
	card := core.Card{ID: "kit", Name: "Kit", Domains: []string{"family"}, MaxConcurrent: 2}
	workFor(t, card, nil, func(t *testing.T, h *playedHub) {
		var said wire.Capabilities
		if h.expect(wire.KindCapabilities, "", &said); said.AgentName != "Kit" || *said.MaxConcurrentTasks != 2 || said.Extensions[0] != "progress" {
			t.Errorf("capabilities: got %+v, want those of the card", said)
		}
		h.say(`{"id":"1","from":"hub","kind":"discover"}`)
		if h.expect(wire.KindCapabilities, "1", &said); said.TakesContext == nil || *said.TakesContext {
			t.Errorf("capabilities without a notice handler: got %+v, want takes_context false", said)
		}
		h.say(`{"id":"2","from":"hub","kind":"ping"}`)
		var pong wire.Pong
		if h.expect(wire.KindPong, "2", &pong); pong.Status != "idle" || pong.AgentName != "Kit" {
			t.Errorf("pong: got %+v, want idle Kit", pong)
		}
		h.say(`{"id":"3","from":"hub","kind":"negotiate"}`)
		h.refused("3", wire.CodeUnknownKind, "negotiate")
		h.say(`{"id":"4","from":"hub","kind":"query","payload":{}}`)
		h.refused("4", wire.CodeInvalidEnvelope, "question")
		h.say(`{"id":"5","from":"hub","kind":"cancel","ref":"nothing"}`)
		var ack wire.Ack
		if h.expect(wire.KindAck, "5", &ack); ack.Accepted {
			t.Errorf("a cancel of nothing: got %+v, want not accepted", ack)
		}
	})
}

func TestAnAgentRunsAsManyTasksAsDeclaredAndRefusesMore(t *testing.T) {
	release := make(chan struct{})
	handle := func(_ context.Context, r core.Request, say func(core.Body) error) error {
		<-release
		return say(core.Text{Text: r.Content})
	}
	workFor(t, core.Card{ID: "kit", MaxConcurrent: 2}, handle, func(t *testing.T, h *playedHub) {
		h.expect(wire.KindCapabilities, "", new(wire.Capabilities))
		for _, id := range []string{"1", "2", "2", "3"} {
			h.say(`{"id":"` + id + `","from":"rest","kind":"query","payload":{"question":"` + id + `"}}`)
		}
		h.refused("3", wire.CodeOverloaded, "2 tasks")
		close(release)
		got := map[string]string{}
		for range 2 {
			var r wire.Response
			e := h.expect(wire.KindResponse, "", &r)
			got[e.Ref] = r.Summary
		}
		if diff := cmp.Diff(map[string]string{"1": "1", "2": "2"}, got); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
		h.expectNothing()
	})
}

func TestAnAgentAcknowledgesADelegateBeforeItsWorkIsDone(t *testing.T) {
	handle := func(_ context.Context, _ core.Request, say func(core.Body) error) error {
		time.Sleep(time.Minute)
		return say(core.Done{Text: "sent", Data: json.RawMessage(`{"to":"family"}`)})
	}
	workFor(t, core.Card{ID: "kit"}, handle, func(t *testing.T, h *playedHub) {
		h.expect(wire.KindCapabilities, "", new(wire.Capabilities))
		began := time.Now()
		h.say(`{"id":"d1","from":"rest","kind":"delegate","payload":{"task":"send it","priority":"urgent","report_back":true}}`)
		var ack wire.Ack
		if h.expect(wire.KindAck, "d1", &ack); !ack.Accepted || time.Since(began) > 0 {
			t.Errorf("ack: got %+v after %s, want accepted at once", ack, time.Since(began))
		}
		h.say(`{"id":"d2","from":"rest","kind":"delegate","payload":{"task":"one too many"}}`)
		h.refused("d2", wire.CodeOverloaded, "1 task")
		var result wire.Result
		h.expect(wire.KindResult, "d1", &result)
		want := wire.Result{Status: wire.StatusCompleted, Outcome: "sent", Data: json.RawMessage(`{"to":"family"}`), TaskRef: "send it"}
		if diff := cmp.Diff(want, result); diff != "" {
			t.Errorf("result (-want +got):\n%s", diff)
		}
		h.expectNothing()
	})
}

func TestAnAgentSendsNoResultOfADelegateThatWantsNoReport(t *testing.T) {
	var sent chan struct{}
	handle := func(_ context.Context, r core.Request, say func(core.Body) error) error {
		if r.Intent == core.IntentDelegate {
			<-sent
		}
		return say(core.Done{Text: "sent"})
	}
	workFor(t, core.Card{ID: "kit"}, handle, func(t *testing.T, h *playedHub) {
		sent = make(chan struct{})
		h.expect(wire.KindCapabilities, "", new(wire.Capabilities))
		h.say(`{"id":"d1","from":"rest","kind":"delegate","payload":{"task":"send it","report_back":false}}`)
		var ack wire.Ack
		if h.expect(wire.KindAck, "d1", &ack); !ack.Accepted { // the caller waits for it, and not for the outcome
			t.Errorf("ack: got %+v, want accepted", ack)
		}
		h.say(`{"id":"q1","from":"rest","kind":"query","payload":{"question":"?"}}`)
		h.expectNothing()
		close(sent)
		h.expect(wire.KindResponse, "q1", new(wire.Response))
		h.expectNothing()
	})
}

func TestAnAgentThatLeavesSaysThatItTakesNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		leave := agent.NewLeave(stop)
		ours, theirs := coretest.Pipe[[]byte, []byte](0)
		h := &playedHub{t, ours, make(chan error, 1)}
		release := make(chan struct{})
		go func() {
			h.done <- client.Work(agent.WithLeave(ctx, leave), theirs, core.Card{ID: "kit", MaxConcurrent: 2}, func(context.Context, core.Request, func(core.Body) error) error {
				<-release
				return nil
			}, client.WorkOptions{})
		}()
		var said wire.Capabilities
		h.expect(wire.KindCapabilities, "", &said)
		h.say(`{"id":"1","from":"rest","kind":"query","payload":{"question":"?"}}`)
		synctest.Wait()
		leave.Ask()
		if h.expect(wire.KindCapabilities, "", &said); *said.MaxConcurrentTasks != 0 {
			t.Errorf("got %d tasks at once, want none any more", *said.MaxConcurrentTasks)
		}
		h.say(`{"id":"2","from":"hub","kind":"ping"}`)
		var pong wire.Pong
		if h.expect(wire.KindPong, "2", &pong); pong.Status != "overloaded" {
			t.Errorf("got the status %q, want overloaded: another would make it free", pong.Status)
		}
		h.say(`{"id":"3","from":"rest","kind":"query","payload":{"question":"?"}}`)
		h.refused("3", wire.CodePeerNotFound, "about to leave")
		close(release)
		<-time.After(10 * time.Second) // the hub reads nothing
		h.expect(wire.KindResponse, "1", new(wire.Response))
		if err := <-h.done; err == nil || ctx.Err() == nil {
			t.Errorf("got %v, want Work to end with its context once the query is answered", err)
		}
	})
}
