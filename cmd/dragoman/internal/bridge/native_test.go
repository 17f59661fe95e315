package bridge_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/bridge"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

// side is a test in place of a process or a hub.
type side struct {
	*testing.T
	conn *end
}

func (e side) says(frames ...string) {
	e.Helper()
	for _, frame := range frames {
		if err := e.conn.Send(e.Context(), []byte(frame)); err != nil {
			e.Fatal(err)
		}
	}
}

// hears receives a frame that contains the parts.
func (e side) hears(parts ...string) {
	e.Helper()
	frame, err := e.conn.Receive(e.Context())
	if err != nil {
		e.Fatal(err)
	}
	for _, part := range parts {
		if !strings.Contains(string(frame), part) {
			e.Errorf("got %s, want %s in it", frame, part)
		}
	}
}

// gives has the hub give the process a request.
func (e side) gives(task, intent string) {
	event := `{"event":{"task":"` + task + `","role":"agent","cursor":"1.1","seq":1,"epoch":1,"at":"2026-01-02T03:04:05Z",`
	e.says(event+`"kind":"opened","body":{"request":{"intent":"`+intent+`","to":"kid","content":"?"}}}}`, event+`"kind":"assigned","body":{"agent":"kid","attempt":1}}}`)
}

// bridged runs a bridge between a process and a hub; ran gets why it ended.
func bridged(ctx context.Context, t *testing.T) (process, hub side, ran <-chan error) {
	return bridgedAs(ctx, t, core.Card{ID: "kid"}, func() {})
}

// bridgedAs is bridged for an agent with a card.
func bridgedAs(ctx context.Context, t *testing.T, card core.Card, joined func()) (process, hub side, ran <-chan error) {
	near, far := coretest.Pipe[[]byte, []byte](8)
	up, down := coretest.Pipe[[]byte, []byte](0)
	end := make(chan error, 1)
	go func() {
		end <- bridge.RunNative(ctx, far, down, card, joined, slog.New(slog.DiscardHandler))
	}()
	return side{t, near}, side{t, up}, end
}

func TestAProcessThatLeavesFinishesItsTasksAndGetsNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		leave := agent.NewLeave(stop)
		process, hub, ran := bridged(agent.WithLeave(ctx, leave), t)
		for _, given := range [][2]string{{"notice", "notify"}, {"ended", "ask"}, {"asked", "ask"}} {
			hub.gives(given[0], given[1])
			process.hears(`"opened"`)
			process.hears(`"assigned"`)
		}
		process.says(`{"event": {"task": "ended", "kind": "done", "body": {}}}`)
		hub.hears(`"ended"`)
		synctest.Wait()
		if got := leave.Ask(); got != 1 {
			t.Errorf("got %d tasks to finish, want the one that was asked and not ended", got)
		}
		hub.hears(`{"load":{"state":"draining"}}`)
		hub.gives("late", "ask")
		process.hears(`"late"`, `"opened"`)
		hub.hears(`"late"`, `"failed"`, `"unreachable"`)
		process.says(`{"event": {"task": "asked", "kind": "text", "body": {"text": "\"done\""}}}`)
		hub.hears(`"text"`)
		synctest.Wait()
		if ctx.Err() != nil {
			t.Error("the agent has left, want it to finish its task")
		}
		process.says(`{"event": {"task": "asked", "kind": "failed", "body": {"fault": {"code": "internal", "message": "no"}}}}`)
		<-time.After(10 * time.Second) // the hub reads nothing
		hub.hears(`"asked"`, `"failed"`)
		if err := <-ran; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the end of the context once the last task has ended", err)
		}
	})
}

func TestTheTasksOfALostConnectionKeepNoAgentFromLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		leave := agent.NewLeave(stop)
		process, hub, ran := bridged(agent.WithLeave(ctx, leave), t)
		hub.gives("asked", "ask")
		process.hears(`"opened"`)
		process.hears(`"assigned"`)
		leave.Ask()
		hub.hears(`"draining"`)
		_ = hub.conn.Close(link.Reason{Cause: link.PeerGone})
		<-ran
		if ctx.Err() == nil {
			t.Error("the agent stays, want it to have left: nobody waits for its task")
		}
	})
}
