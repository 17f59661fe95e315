package pi

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
)

func TestAQuestionIsAnsweredInItsSessionAlone(t *testing.T) {
	h, s := newStage(t, Options{})
	a := join(t, h, core.Card{ID: "a", Capabilities: []string{"ui"}}, func(*joined, hub.Batch) {})
	c := dial(t, s, ConnOptions{})
	ann, bob := dial(t, s, ConnOptions{Principal: core.Principal{ID: "ann", Authenticated: true}}), dial(t, s, ConnOptions{Principal: core.Principal{ID: "bob", Authenticated: true}})
	for _, who := range []*caller{ann, bob} {
		who.open("s", "a")
		who.open("t", "")
	}
	ann.send(`{"id":"p","type":"prompt","sessionId":"s","message":"hi"}`)
	ann.until(`"type":"turn_start"`)
	for len(h.Match(core.ToAgent("a"))) == 0 || h.Totals().Active == 0 {
		c.ok(`{"type":"list_sessions"}`)
	}
	a.CallTool("k", "ask_user", []byte(`{"question":"Who?"}`))
	ann.until("extension_ui_request", `"method":"input"`)
	id := ann.transcript("s").Asked[0].RequestID
	answer := func(session, value string) string {
		return `{"type":"extension_ui_response","sessionId":"` + session + `","requestId":"` + id + `","response":{"method":"input","value":"` + value + `"}}`
	}
	ann.fails(answer("t", "me"), "Session ID mismatch for request "+id)
	bob.fails(answer("s", "me"), "No pending UI request with id "+id)
	ann.ok(answer("s", "me"))
	ann.until("notify", "Who? answered by ann: me")
	ann.fails(answer("s", "me"), "Request "+id+" already settled")
	if got := len(bob.transcript("s").Asked); got != 0 {
		t.Errorf("bob got %d questions, want none: the session is another", got)
	}
}

func TestWhatIsTypedIsReadAsTheOptionsThatItNames(t *testing.T) {
	options := []question.Option{{Label: "Red"}, {Label: "Blue, dark", Description: "as the sea"}, {Label: "3"}, {Label: "Green"}}
	one, several, words := question.Question{Options: options}, question.Question{Options: options, Several: true}, question.Question{}
	for _, tt := range []struct {
		q      question.Question
		answer string
		want   core.Reply
	}{
		{one, `{"method":"select","value":"Red"}`, core.Reply{Selected: []string{"Red"}}},
		{one, `{"method":"select","value":"Blue, dark: as the sea"}`, core.Reply{Selected: []string{"Blue, dark"}}},
		{one, `{"method":"select","value":"1"}`, core.Reply{Text: "1"}},
		{one, `{"method":"select","value":"Pink"}`, core.Reply{Text: "Pink"}},
		{one, `{"method":"input","value":"Red"}`, core.Reply{Dismissed: true}},
		{one, `{"method":"select","value":7}`, core.Reply{Dismissed: true}},
		{one, `{"method":"cancelled"}`, core.Reply{Dismissed: true}},
		{words, `{"method":"input","value":" a, b "}`, core.Reply{Text: "a, b"}},
		{words, `{"method":"input","value":"  "}`, core.Reply{Dismissed: true}},
		{several, `{"method":"input","value":"red, 2, red"}`, core.Reply{Selected: []string{"Red", "Blue, dark"}}},
		{several, `{"method":"input","value":"Blue, dark"}`, core.Reply{Selected: []string{"Blue, dark"}}},
		{several, `{"method":"input","value":"3"}`, core.Reply{Selected: []string{"3"}}},
		{several, `{"method":"input","value":"4, 5, 0"}`, core.Reply{Selected: []string{"Green"}, Text: "5, 0"}},
		{several, `{"method":"input","value":" , "}`, core.Reply{Dismissed: true}},
		{several, `{"method":"interview","responses":{}}`, core.Reply{Dismissed: true}},
	} {
		r, _ := command.Decode([]byte(tt.answer), 1<<20)
		if diff := cmp.Diff(tt.want, replyOf(tt.q, r)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.answer, diff)
		}
	}
}
