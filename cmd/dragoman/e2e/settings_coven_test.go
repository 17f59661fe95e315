package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

func TestHowLongAMessageOfACovenClientIsKnownCanBeSet(t *testing.T) {
	s := newStage(t, func(c *config.Config) { c.Coven.Remember = time.Nanosecond })
	s.cast(t, coven.Name, "guide", 1)
	ada := arrive(t, s.service.Addresses().GRPC)
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	key := s.key()
	m := &wire.ClientSendMessageRequest{ConversationKey: "guide", Content: "say " + key, IdempotencyKey: "again"}
	for range 2 {
		if got, err := ada.SendMessage(ctx, m); err != nil || got.GetStatus() != "accepted" {
			t.Errorf("got %v and %v, want it accepted each time", got, err)
		}
		s.end(t, key)
	}
}

func TestHowManyToolsACovenAgentMayHaveRunningCanBeSet(t *testing.T) {
	s := newStage(t, func(c *config.Config) { c.Coven.ToolCalls = 1 })
	p := mustRegister(t, s, "p", definition("x"))
	a := connectCovenAgent(t, s, "a")
	defer a.leave()
	x := a.call("x", struct{}{})
	id := p.next().GetRequestId()
	if got := a.call("x", struct{}{}).outcome(t); got.Code != "overloaded" {
		t.Errorf("a second call: got %+v, want it refused as overloaded", got)
	}
	p.answer(id, "1")
	if got := x.outcome(t); got.End != "output" {
		t.Errorf("the first call: got %+v, want its output", got)
	}
}
