package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/roster"
)

// joinAs joins in a dialect and leaves again. It returns why it was refused.
func (h *testHub) joinAs(t *testing.T, dialect, token string, card core.Card) error {
	t.Helper()
	ctx, leave := context.WithTimeout(t.Context(), watchdog)
	defer leave()
	joined, ended := make(chan struct{}), make(chan error, 1)
	card.MaxConcurrent = 1
	go func() {
		ended <- service.Joins()[dialect](ctx, client.Hub{URL: h.url(), GRPC: h.service.Addresses().GRPC, Token: token}, card, shout, func(client.AskFunc) { close(joined) }, h.log)
	}()
	select {
	case err := <-ended:
		return err
	case <-joined:
	}
	h.await(t, "joined "+string(card.ID))
	leave()
	<-ended
	h.await(t, "left "+string(card.ID))
	return nil
}

// Nobody joins in any dialect under what looks like, or stands for, another agent.
func TestNobodyIsMistakenForAnotherAgentInAnyDialect(t *testing.T) {
	const key = "21fe31dfa154a261626bf854046fd227"
	h := newTestHub(t, func(c *config.Config) { c.Auth.Tokens = tokensFile(t, "alice", "bob") })
	for _, id := range []string{"shout", "ed25519." + key} {
		ctx, leave := context.WithCancel(context.Background())
		ended := make(chan struct{})
		t.Cleanup(func() { leave(); <-ended })
		go func() {
			defer close(ended)
			card := core.Card{ID: core.AgentID(id), Name: "The Shouter", MaxConcurrent: 1}
			_ = service.Joins()["coven"](ctx, client.Hub{GRPC: h.service.Addresses().GRPC, Token: "alice"}, card, shout, func(client.AskFunc) {}, h.log) // it is cancelled
		}()
		h.await(t, "joined "+id)
	}
	for dialect := range service.Joins() {
		for what, id := range map[string]string{
			"its alias":             string(roster.Alias("shout")),
			"its alias in capitals": strings.ToUpper(string(roster.Alias("shout"))),
			"the bare key":          key,
			"its id in capitals":    "SHOUT",
			"a zero-width space":    "sh\u200bout",
			"a zero-width joiner":   "sh\u200dout",
			"another direction":     "\u202eshout",
			"a Cyrillic letter":     "sh\u043eut",
			"a Greek letter":        "sh\u03bfut",
			"a filler":              "shout\u3164",
			"another form":          "sho\u0301ut",
			"a blank":               "shout ",
			"the hub":               "hub",
			"the hub in capitals":   "HUB",
			"everybody":             "*",
			"a capability":          "Capability:x",
		} {
			if err := h.joinAs(t, dialect, "bob", core.Card{ID: core.AgentID(id), Name: "somebody"}); err == nil {
				t.Errorf("%s, %s: got %q joined, want it refused", dialect, what, id)
			}
		}
		if err := h.joinAs(t, dialect, "bob", core.Card{ID: core.AgentID("the shouter"), Name: "somebody"}); err == nil {
			t.Errorf("%s, its name: got it joined, want it refused", dialect)
		}
		if err := h.joinAs(t, dialect, "bob", core.Card{ID: "bob", Name: "somebody"}); err != nil {
			t.Errorf("%s, an id of its own: got %v, want it joined", dialect, err)
		}
	}
}
