package pi_test

import (
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

func TestAQuestionIsAnsweredOnlyInItsSession(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	a := joinAgent(t, h, core.Card{ID: "a", Capabilities: []string{"ui"}}, func(*testAgent, hub.Batch) {})
	c := dial(t, s, pi.ConnOptions{})
	ann, bob := dial(t, s, pi.ConnOptions{Principal: core.Principal{ID: "ann", Authenticated: true}}), dial(t, s, pi.ConnOptions{Principal: core.Principal{ID: "bob", Authenticated: true}})
	for _, who := range []*testClient{ann, bob} {
		who.open("s", "a")
		who.open("t", "")
	}
	ann.send(`{"id":"p","type":"prompt","sessionId":"s","message":"hi"}`)
	ann.until(`"type":"turn_start"`)
	for len(h.Match(core.Principal{Operator: true}, core.ToAgent("a"))) == 0 || h.Totals(core.Principal{Operator: true}).Active == 0 {
		c.ok(`{"type":"list_sessions"}`)
	}
	a.CallTool("k", "ask_user", []byte(`{"question":"Who?"}`))
	ann.until("extension_ui_request", `"method":"input"`)
	id := ann.transcript("s").UIRequests[0].RequestID
	answer := func(session, value string) string {
		return `{"type":"extension_ui_response","sessionId":"` + session + `","requestId":"` + id + `","response":{"method":"input","value":"` + value + `"}}`
	}
	ann.fails(answer("t", "me"), "Session ID mismatch for request "+id)
	bob.fails(answer("s", "me"), "No pending UI request with id "+id)
	ann.ok(answer("s", "me"))
	ann.until("notify", "Who? answered by ann: me")
	ann.fails(answer("s", "me"), "Request "+id+" already settled")
	if got := len(bob.transcript("s").UIRequests); got != 0 {
		t.Errorf("bob got %d questions, want none in another session", got)
	}
}
