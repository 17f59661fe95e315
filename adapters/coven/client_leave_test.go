package coven_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/coven/client"
	"github.com/dragoman-hub/dragoman/core"
	coreagent "github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/coretest"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

func TestAnAgentThatLeavesFinishesItsRequestAndTakesNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		leave := coreagent.NewLeave(stop)
		server, end := coretest.ProtoPipe[pb.AgentMessage, pb.ServerMessage](0)
		g := &gateway{t: t, conn: server, end: make(chan error, 1)}
		release := make(chan struct{})
		go func() {
			g.end <- client.Work(coreagent.WithLeave(ctx, leave), end, core.Card{ID: "a", MaxConcurrent: 2}, func(_ context.Context, _ core.Request, say func(core.Body) error) error {
				<-release
				return say(core.Done{})
			}, client.WorkOptions{})
		}()
		g.receive() // its registration
		g.welcome()
		g.prompt("first")
		synctest.Wait()
		if got := leave.Ask(); got != 1 {
			t.Errorf("got %d requests to finish, want 1", got)
		}
		g.prompt("late")
		if r := g.receive().GetResponse(); r.GetRequestId() != "late" || r.GetError() == "" {
			t.Errorf("a late request: got %v, want it refused", r)
		}
		close(release)
		<-time.After(10 * time.Second) // the gateway reads nothing
		if r := g.receive().GetResponse(); r.GetRequestId() != "first" || r.GetDone() == nil {
			t.Errorf("got %v, want the end of the first request", r)
		}
		if err := <-g.end; err == nil || ctx.Err() == nil {
			t.Errorf("got %v, want Work to end with its context once the request is done", err)
		}
	})
}

func TestAShutdownLetsTheAgentFinishItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		g := clientConnect(t, func(ctx context.Context, _ core.Request, say func(core.Body) error) error {
			select {
			case <-release:
			case <-ctx.Done():
				t.Errorf("the request was stopped: got %v, want it to go on", context.Cause(ctx))
			}
			return say(core.Text{Text: "finished"})
		})
		g.welcome()
		g.prompt("r")
		g.send(&pb.ServerMessage{Payload: &pb.ServerMessage_Shutdown{Shutdown: &pb.Shutdown{Reason: "maintenance"}}})
		synctest.Wait()
		select {
		case err := <-g.end:
			t.Fatalf("got %v, want the agent to stay for its request", err)
		default:
		}
		close(release)
		if m := g.receive().GetResponse(); m.GetText() != "finished" {
			t.Errorf("got %v, want the text", m)
		}
		if m := g.receive().GetResponse(); m.GetRequestId() != "r" || m.GetDone() == nil {
			t.Errorf("got %v, want the request done", m)
		}
		if err := <-g.end; err != nil {
			t.Errorf("got %v, want nil once the request is done", err)
		}
	})
}
