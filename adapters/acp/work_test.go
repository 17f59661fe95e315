package acp

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core"
)

func TestTheWorkingEndAnswersPingDiscoverAndWhatItDoesNotKnow(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		hubEnd, agentEnd := pipe()
		done := make(chan error, 1)
		go func() {
			done <- Work(context.Background(), agentEnd, core.Card{ID: "kit", Name: "Kit", Domains: []string{"family"}, MaxConcurrent: 2}, nil, WorkOptions{})
		}()
		a := &actor{stage: s, conn: hubEnd, name: "the hub"}
		if got := expect[Capabilities](a, KindCapabilities, ""); got.AgentName != "Kit" || *got.MaxConcurrentTasks != 2 || got.Extensions[0] != "progress" {
			t.Errorf("capabilities: got %+v, want those of the card", got)
		}
		a.say(`{"id":"1","from":"hub","kind":"discover"}`)
		if got := expect[Capabilities](a, KindCapabilities, "1"); got.TakesContext == nil || *got.TakesContext {
			t.Errorf("capabilities of who hears no notify: got %+v, want it said that no context is taken", got)
		}
		a.say(`{"id":"2","from":"hub","kind":"ping"}`)
		if got := expect[Pong](a, KindPong, "2"); got.Status != "idle" || got.AgentName != "Kit" {
			t.Errorf("pong: got %+v, want idle Kit", got)
		}
		a.say(`{"id":"3","from":"hub","kind":"negotiate"}`)
		a.refused("3", CodeUnknownKind, "negotiate")
		a.say(`{"id":"4","from":"hub","kind":"query","payload":{}}`)
		a.refused("4", CodeInvalidEnvelope, "question")
		a.say(`{"id":"5","from":"hub","kind":"cancel","ref":"nothing"}`)
		if got := expect[Ack](a, KindAck, "5"); got.Accepted {
			t.Errorf("a cancel of nothing: got %+v, want not accepted", got)
		}
		_ = hubEnd.Close(nilReason)
		if err := <-done; err != nil {
			t.Errorf("Work: got %v, want no error after a good end", err)
		}
	})
}

func TestTheWorkingEndRunsAsManyAsItSaidAndSaysWhenItIsFull(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		hubEnd, agentEnd := pipe()
		release := make(chan struct{})
		done := make(chan error, 1)
		go func() {
			done <- Work(context.Background(), agentEnd, core.Card{ID: "kit", MaxConcurrent: 2}, func(ctx context.Context, r core.Request, say func(core.Body) error) error {
				<-release
				return say(core.Text{Text: r.Content})
			}, WorkOptions{})
		}()
		a := &actor{stage: s, conn: hubEnd, name: "the hub"}
		a.expect(KindCapabilities)
		for _, id := range []string{"1", "2", "2", "3"} {
			a.say(`{"id":"%s","from":"rest","kind":"query","payload":{"question":"%s"}}`, id, id)
		}
		a.refused("3", CodeOverloaded, "2 tasks")
		close(release)
		got := map[string]string{}
		for range 2 {
			e := a.expect(KindResponse)
			var r Response
			if err := e.Read(&r); err != nil {
				t.Fatal(err)
			}
			got[e.Ref] = r.Summary
		}
		if diff := cmp.Diff(map[string]string{"1": "1", "2": "2"}, got); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
		a.silent()
		_ = hubEnd.Close(nilReason)
		<-done
	})
}
