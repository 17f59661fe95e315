package parallax_test

import (
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/adapters/parallax/client"
	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

func TestAskReturnsThePartialResultOfAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agentEnd, hubEnd := coretest.Pipe[[]byte, []byte](4)
		registered, worked := make(chan *client.Agent, 1), make(chan error, 1)
		go func() {
			worked <- client.Work(t.Context(), agentEnd, core.Card{ID: "a"}, nil, client.WorkOptions{Registered: func(a *client.Agent) { registered <- a }})
		}()
		send := func(frame string) {
			if err := hubEnd.Send(t.Context(), []byte(frame)); err != nil {
				t.Fatal(err)
			}
		}
		receive := func(kind string) wire.Message {
			t.Helper()
			frame, err := hubEnd.Receive(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			m, err := wire.Decode(frame)
			if err != nil || m.Type != kind {
				t.Fatalf("got %s and %v, want a %s", frame, err, kind)
			}
			return m
		}
		receive(wire.TypeRegister)
		send(`{"type":"registered","id":"register","payload":{"agentId":"a","capabilities":[],"config":{"heartbeatInterval":10000,"taskTimeout":30000,"extensions":["task_request"]}}}`)
		agent := <-registered
		var answer core.Answer
		var err error
		asked := make(chan struct{})
		go func() {
			defer close(asked)
			answer, err = agent.Ask(t.Context(), core.Request{To: core.ToAny(), Content: "?"}, nil)
		}()
		m := receive(wire.TypeTaskRequest)
		send(`{"type":"task_error","payload":{"requestId":"` + m.ID + `","error":{"code":"TIMEOUT","message":"late"},"partialResult":"half"}}`)
		<-asked
		if answer.Text != "half" || core.AsFault(err).Code != core.CodeTimeout {
			t.Errorf("got %+v and %v, want half and a timeout", answer, err)
		}
		_ = hubEnd.Close(link.Reason{Cause: link.Normal})
		<-worked
	})
}
