package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

func TestCovenRememberIsASetting(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) { c.Coven.Remember = time.Nanosecond })
	h.startAgent(t, coven.Name, "guide", 1)
	ada := connectCovenClient(t, h.service.Addresses().GRPC)
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	key := h.key()
	m := &wire.ClientSendMessageRequest{ConversationKey: "guide", Content: "say " + key, IdempotencyKey: "again"}
	for range 2 {
		if got, err := ada.SendMessage(ctx, m); err != nil || got.GetStatus() != "accepted" {
			t.Errorf("got %v and %v, want it accepted each time", got, err)
		}
		h.end(t, key)
	}
}

func TestCovenToolCallsIsASetting(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) { c.Coven.ToolCalls = 1 })
	p := mustRegisterPack(t, h, "p", definition("x"))
	a := connectCovenAgent(t, h, "a")
	defer a.leave()
	x := a.call("x", struct{}{})
	id := p.nextCall().GetRequestId()
	if got := a.call("x", struct{}{}).wait(t); got.Code != "overloaded" {
		t.Errorf("a second call: got %+v, want it refused as overloaded", got)
	}
	p.answer(id, "1")
	if got := x.wait(t); got.End != "output" {
		t.Errorf("the first call: got %+v, want its output", got)
	}
}
