package native_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/native/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/coretest"
)

func TestAnAgentThatLeavesSaysThatItTakesNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		leave := agent.NewLeave(stop)
		agentEnd, hubEnd := coretest.Pipe[[]byte, []byte](0)
		release, worked := make(chan struct{}), make(chan error, 1)
		go func() {
			worked <- client.Work(agent.WithLeave(ctx, leave), agentEnd, core.Card{ID: "a", MaxConcurrent: 2}, func(context.Context, core.Request, func(core.Body) error) error {
				<-release
				return nil
			}, client.WorkOptions{})
		}()
		send := func(frames ...string) {
			for _, frame := range frames {
				if err := hubEnd.Send(t.Context(), []byte(frame)); err != nil {
					t.Fatal(err)
				}
			}
		}
		receive := func(parts ...string) {
			t.Helper()
			frame, err := hubEnd.Receive(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range parts {
				if !strings.Contains(string(frame), part) {
					t.Errorf("got %s, want %s in it", frame, part)
				}
			}
		}
		assign := func(task string) {
			event := `{"event":{"task":"` + task + `","role":"agent","cursor":"1.1","seq":1,"epoch":1,"at":"2026-01-02T03:04:05Z",`
			send(event+`"kind":"opened","body":{"request":{"intent":"ask","to":"a","content":"?"}}}}`, event+`"kind":"assigned","body":{"agent":"a","attempt":1}}}`)
		}
		receive(`"join"`)
		send(`{"result":{"id":"1","agent":"a"}}`)
		assign("first")
		synctest.Wait()
		leave.Ask()
		receive(`{"load":{"state":"draining"}}`)
		assign("late")
		receive(`"late"`, `"failed"`, `"unreachable"`)
		close(release)
		<-time.After(10 * time.Second) // the hub reads nothing
		receive(`"first"`, `"done"`)
		if err := <-worked; err == nil || ctx.Err() == nil {
			t.Errorf("got %v, want Work to end with its context once the task is done", err)
		}
	})
}
