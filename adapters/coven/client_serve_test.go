package coven_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/coven/client"
	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
	coreagent "github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// serve connects an [agent.Agent] to a gateway, in a bubble.
func serve(t *testing.T, card core.Card, work func(context.Context, coreagent.Turn) error) *gateway {
	t.Helper()
	server, end := coretest.ProtoPipe[pb.AgentMessage, pb.ServerMessage](64)
	g := &gateway{t: t, conn: server, end: make(chan error, 1)}
	go func() { g.end <- client.Serve(context.Background(), end, card, work, func(*pb.Welcome) {}) }()
	g.receive()
	g.welcome()
	return g
}

func TestADecisionIsForTheRequestThatAskedForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serve(t, core.Card{ID: "a", MaxConcurrent: 2}, func(ctx context.Context, turn coreagent.Turn) error {
			_ = turn.Report(core.ApprovalRequested{ID: "call_1", Name: "write", Input: "{}"}, nil)
			b, err := turn.Next(ctx)
			if err != nil {
				return err
			}
			d := b.(core.ApprovalDecided)
			return turn.Report(core.Text{Text: d.ID + " approved"}, nil)
		})
		g.prompt("first")
		first := g.receive().GetResponse().GetToolApprovalRequest().GetId()
		g.prompt("second")
		second := g.receive().GetResponse().GetToolApprovalRequest().GetId()
		if first != "call_1" || second == first {
			t.Fatalf("the ids are %q and %q, want call_1 and another", first, second)
		}
		for id, request := range map[string]string{second: "second", first: "first"} {
			g.send(&pb.ServerMessage{Payload: &pb.ServerMessage_ToolApproval{ToolApproval: &pb.ToolApprovalResponse{Id: id, Approved: true}}})
			if m := g.receive().GetResponse(); m.GetRequestId() != request || m.GetText() != "call_1 approved" {
				t.Errorf("the decision on %s: got %v, want it told to %s under the agent's own id", id, m, request)
			}
			if m := g.receive().GetResponse(); m.GetRequestId() != request || m.GetDone() == nil {
				t.Errorf("got %v, want %s done", m, request)
			}
		}
		if err := g.hangUp(link.Reason{Cause: link.Normal}); err != nil {
			t.Errorf("got %v, want nil", err)
		}
	})
}

func TestWhatAnAgentSaysAfterACancelCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serve(t, core.Card{ID: "a"}, func(ctx context.Context, turn coreagent.Turn) error {
			b, err := turn.Next(ctx)
			if err != nil {
				return err
			}
			_ = turn.Report(core.Text{Text: "what was left"}, nil)
			return turn.Report(core.Cancelled{Reason: b.(core.CancelRequested).Reason}, nil)
		})
		g.prompt("r")
		synctest.Wait()
		g.cancel("r", "enough")
		if m := g.receive().GetResponse(); m.GetText() != "what was left" {
			t.Errorf("got %v, want the text", m)
		}
		if m := g.receive().GetResponse(); m.GetCancelled().GetReason() != "enough" {
			t.Errorf("got %v, want it cancelled", m)
		}
		if err := g.hangUp(link.Reason{Cause: link.Normal}); err != nil {
			t.Errorf("got %v, want nil", err)
		}
	})
}

func TestAnAgentThatIgnoresACancelIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serve(t, core.Card{ID: "a"}, func(ctx context.Context, _ coreagent.Turn) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})
		g.prompt("r")
		synctest.Wait()
		began := time.Now()
		g.cancel("r", "enough")
		if m := g.receive().GetResponse(); m.GetCancelled().GetReason() != "enough" || time.Since(began) < time.Second {
			t.Errorf("got %v after %v, want it cancelled after a grace", m, time.Since(began))
		}
		if err := g.hangUp(link.Reason{Cause: link.Normal}); err != nil {
			t.Errorf("got %v, want nil", err)
		}
	})
}

func TestContextIsForAnAgentThatDoesOneRequestAtATime(t *testing.T) {
	for concurrent, want := range map[int]bool{1: true, 2: false} {
		synctest.Test(t, func(t *testing.T) {
			var told string
			g := serve(t, core.Card{ID: "a", MaxConcurrent: concurrent, Features: core.FeatureInjection}, func(ctx context.Context, turn coreagent.Turn) error {
				if b, err := turn.Next(ctx); err == nil {
					told = b.(core.Injected).Content
				}
				return nil
			})
			g.prompt("r")
			synctest.Wait()
			g.send(&pb.ServerMessage{Payload: &pb.ServerMessage_InjectContext{InjectContext: &pb.InjectContext{InjectionId: "i", Content: "more"}}})
			if ack := g.receive().GetInjectionAck(); ack.GetAccepted() != want {
				t.Errorf("%d at a time: got %v, want accepted: %v", concurrent, ack, want)
			}
			synctest.Wait()
			if (told == "more") != want {
				t.Errorf("%d at a time: the agent was told %q", concurrent, told)
			}
			_ = g.hangUp(link.Reason{Cause: link.Normal})
		})
	}
}

// The name of a thread is no secret: what was said there is for those who proved that they said it.
func TestSendersWhoProvedWhoTheyAreHaveConversationsOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conversations := make(chan coreagent.Conversation, 1)
		g := serve(t, core.Card{ID: "a"}, func(_ context.Context, turn coreagent.Turn) error {
			conversations <- coreagent.ConversationOf(turn)
			return nil
		})
		ask := func(id, sender string, proven bool) coreagent.Conversation {
			m := &pb.SendMessage{RequestId: id, ThreadId: "trip", Sender: sender, Content: "go"}
			if proven {
				wire.MarkProven(m)
			}
			g.send(&pb.ServerMessage{Payload: &pb.ServerMessage_SendMessage{SendMessage: m}})
			g.receive()
			return <-conversations
		}
		alice, bob := ask("1", "alice", true), ask("2", "bob", true)
		if alice == bob || alice != ask("3", "alice", true) {
			t.Errorf("got %+v for alice and %+v for bob, want one for each", alice, bob)
		}
		if one := ask("4", "alice", false); one != ask("5", "bob", false) || one == alice {
			t.Errorf("got %+v for senders who proved nothing, want one for all of them", one)
		}
		if err := g.hangUp(link.Reason{Cause: link.Normal}); err != nil {
			t.Errorf("got %v", err)
		}
	})
}
