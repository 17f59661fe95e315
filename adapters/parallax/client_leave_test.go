package parallax_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax/client"
	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

const registered = `{"type":"registered","id":"register","payload":{"agentId":"a","capabilities":[],"config":{"heartbeatInterval":10000,"taskTimeout":30000}}}`

func TestAnAgentThatLeavesSaysThatItTakesNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		leave := agent.NewLeave(stop)
		agentEnd, hubEnd := coretest.Pipe[[]byte, []byte](0)
		worked := make(chan error, 1)
		go func() {
			worked <- client.Work(agent.WithLeave(ctx, leave), agentEnd, core.Card{ID: "a", MaxConcurrent: 2}, func(context.Context, core.Request, func(core.Body) error) error {
				<-time.After(15 * time.Second) // beyond a heartbeat
				return nil
			}, client.WorkOptions{})
		}()
		send := func(frame string) {
			if err := hubEnd.Send(t.Context(), []byte(frame)); err != nil {
				t.Fatal(err)
			}
		}
		receive := func(kind string, payload any) {
			t.Helper()
			frame, err := hubEnd.Receive(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			m := struct {
				Type    string
				Payload any
			}{Payload: payload}
			if err := json.Unmarshal(frame, &m); err != nil || m.Type != kind {
				t.Fatalf("got %s and %v, want a %s", frame, err, kind)
			}
		}
		receive(wire.TypeRegister, new(any))
		send(registered)
		send(`{"type":"task","id":"1","payload":{"taskId":"1","executionId":"1","input":{"content":"?"}}}`)
		synctest.Wait()
		leave.Ask()
		var update wire.StatusUpdate
		if receive(wire.TypeStatusUpdate, &update); update.Status != "draining" {
			t.Errorf("got the status %q, want draining", update.Status)
		}
		send(`{"type":"task","id":"2","payload":{"taskId":"2","executionId":"2","input":{"content":"?"}}}`)
		var refused wire.TaskError
		if receive(wire.TypeTaskError, &refused); refused.TaskID != "2" || refused.Error.Code != "UNREACHABLE" {
			t.Errorf("a late task: got %+v, want it refused as UNREACHABLE", refused)
		}
		var beat wire.Heartbeat
		if receive(wire.TypeHeartbeat, &beat); beat.Status != "draining" {
			t.Errorf("got a heartbeat with the status %q, want draining: another would make it free", beat.Status)
		}
		<-time.After(9 * time.Second) // the hub reads nothing for a while after the result
		receive(wire.TypeTaskResult, new(any))
		receive(wire.TypeDisconnect, new(any))
		if err := <-worked; err != nil {
			t.Errorf("got %v, want no error", err)
		}
	})
}

func TestAHubThatClosesTheConnectionNormallyIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agentEnd, hubEnd := coretest.Pipe[[]byte, []byte](4)
		worked := make(chan error, 1)
		go func() { worked <- client.Work(t.Context(), agentEnd, core.Card{ID: "a"}, nil, client.WorkOptions{}) }()
		synctest.Wait()
		_ = hubEnd.Close(link.Reason{Cause: link.Normal})
		if err := <-worked; err != nil {
			t.Errorf("got %v, want none", err)
		}
	})
}

func TestAStoppedAgentSaysWhyItDisconnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		agentEnd, hubEnd := coretest.Pipe[[]byte, []byte](4)
		worked := make(chan error, 1)
		go func() { worked <- client.Work(ctx, agentEnd, core.Card{ID: "a"}, nil, client.WorkOptions{}) }()
		if err := hubEnd.Send(t.Context(), []byte(registered)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		stop()
		if err := <-worked; err != nil {
			t.Errorf("got %v, want no error", err)
		}
		var frames [2]wire.Message
		for i, want := range []string{wire.TypeRegister, wire.TypeDisconnect} {
			frame, err := hubEnd.Receive(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if frames[i], err = wire.Decode(frame); err != nil || frames[i].Type != want {
				t.Fatalf("got %s and %v, want a %s", frame, err, want)
			}
		}
		got, err := wire.ReadPayload[wire.Disconnect](frames[1])
		if want := (wire.Disconnect{Reason: "shutdown", Graceful: true}); err != nil || got != want {
			t.Errorf("got %+v and %v, want %+v", got, err, want)
		}
	})
}
