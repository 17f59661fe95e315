package client_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/question"
)

// questions returns the open questions that the user may see.
func (s *served) questions() []question.Question {
	synctest.Wait()
	return s.hub.Questions(s.user.Identity().Principal)
}

// answer answers the only open question, and returns its text and options.
func (s *served) answer(r core.Reply) (text string, options []string) {
	s.Helper()
	open := s.questions()
	if len(open) != 1 {
		s.Fatalf("%d questions are open, want one", len(open))
	}
	for _, o := range open[0].Options {
		options = append(options, o.Label)
	}
	r.Question = open[0].ID
	if _, err := s.user.AnswerQuestion(s.Context(), r); err != nil {
		s.Fatal(err)
	}
	return open[0].Text, options
}

// elicits runs a turn in which the agent asks, and returns what it is answered.
func elicits(t *testing.T, params string, people func(s *served, p *peer)) (got string) {
	t.Helper()
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		s.user.WatchQuestions(question.View{Agent: "a", For: s.user.Identity().Principal})
		asked := s.ask("x")
		p.begins("s1")
		prompt := p.wants("session/prompt")
		p.says(`{"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"sessionId":"s1",%s}}`, params)
		people(s, p)
		got = p.answers("0")
		p.replies(prompt, `{"stopReason":"end_turn"}`)
		s.wait(asked)
		_ = stop()
	})
	return got
}

const form = `"mode":"form","message":"Where to?","requestedSchema":{"type":"object","properties":{
"where":{"type":"string","title":"Place","oneOf":[{"const":"eu","title":"Europe"},{"const":"us","title":"America"}]},
"count":{"type":"integer","description":"How many"},"sure":{"type":"boolean"},"tags":{"type":"array","items":{"enum":["a","b","c"]}},"note":{"type":"string"}},
"required":["where","count","sure","tags"]}`

func TestAFormIsAskedWholeAndInWords(t *testing.T) {
	got := elicits(t, strings.ReplaceAll(form, "\n", ""), func(s *served, _ *peer) {
		f := s.questions()[0].Form
		if f == nil || f.Message != "Where to?" || !strings.Contains(`"requestedSchema":`+string(f.Schema), strings.ReplaceAll(form, "\n", "")[len(`"mode":"form","message":"Where to?",`):]) {
			s.Errorf("got the form %+v, want that of the agent", f)
		}
		text, options := s.answer(core.Reply{Text: "where: Asia"})
		if want := "Where to?\n\nAnswer with one line for each field:\nwhere: Place. (one of Europe, America)\ncount: How many. (a whole number)\nsure: (yes or no)\n" +
			"tags: (any of a, b, c, separated by commas)\nnote: (optional)"; text != want || strings.Join(options, ",") != "Decline to answer" {
			s.Errorf("got the question %q with %q, want %q", text, options, want)
		}
		if text, _ := s.answer(core.Reply{Text: "where: America\ncount: 3\nsure: yes\ntags: a, c"}); !strings.HasSuffix(text, `The last answer did not fit: Place: "Asia" is none of Europe, America`) {
			s.Errorf("got the question %q, want it asked again with what does not fit", text)
		}
	})
	if want := `{"action":"accept","content":{"count":3,"sure":true,"tags":["a","c"],"where":"us"}}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	const content = `{"where":"eu","count":1,"sure":false,"tags":[],"note":" as it is "}`
	got = elicits(t, strings.ReplaceAll(form, "\n", ""), func(s *served, _ *peer) { s.answer(core.Reply{Content: json.RawMessage(content)}) })
	if want := `{"action":"accept","content":` + content + `}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAFormThatPeopleDeclineOrDismissIsSoForTheAgent(t *testing.T) {
	for _, c := range []struct {
		schema string
		reply  core.Reply
		want   string
	}{
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, core.Reply{Dismissed: true}, `{"action":"cancel"}`},
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, core.Reply{Selected: []string{"Decline to answer"}}, `{"action":"decline"}`},
		{`{"type":"object","properties":{}}`, core.Reply{Selected: []string{"Accept"}}, `{"action":"accept","content":{}}`},
		{`{"type":"object","properties":{}}`, core.Reply{Selected: []string{"Decline to answer"}}, `{"action":"decline"}`},
	} {
		got := elicits(t, `"mode":"form","message":"m","requestedSchema":`+c.schema, func(s *served, _ *peer) { s.answer(c.reply) })
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.schema, got, c.want)
		}
	}
}

func TestAFormThatCannotBeAskedIsRefusedWithTheReason(t *testing.T) {
	many := strings.TrimSuffix(strings.Repeat(`"m#":{"type":"string"},`, maxFields+1), ",")
	for i := range maxFields + 1 {
		many = strings.Replace(many, "#", fmt.Sprint(i), 1)
	}
	for _, c := range []struct{ schema, want string }{
		{`{"type":"object","properties":{"a":{"type":"hologram"}}}`, `requestedSchema: a: the type is "hologram", want string, number, integer, boolean or array`},
		{`{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}}}`, "requestedSchema: a: an array wants items with an enum or anyOf"},
		{`{"type":"object","required":"a","properties":{"a":{"type":"string"}}}`, "requestedSchema: required: want a list of names"},
		{`{"type":"object","properties":{` + many + `}}`, "requestedSchema: more than 50 fields"},
	} {
		got := elicits(t, `"mode":"form","message":"m","requestedSchema":`+c.schema, func(*served, *peer) {})
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: got %s, want %s", c.schema, got, c.want)
		}
	}
}

// maxFields is how many members of a form the hub asks for.
const maxFields = 50

func TestAQuestionOfAPromptIsAskedInItsTurn(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		s.user.WatchQuestions(question.View{Agent: "a", For: s.user.Identity().Principal})
		asked := s.ask("x")
		p.begins("s1")
		prompt := p.wants("session/prompt")
		p.says(`{"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"requestId":%s,"mode":"form","message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}`, prompt.ID)
		if text, _ := s.answer(core.Reply{Text: "ada"}); text != "Who?\n(optional)" {
			s.Errorf("got the question %q, want that of the agent", text)
		}
		if got, want := p.answers("0"), `{"action":"accept","content":{"name":"ada"}}`; got != want {
			s.Errorf("got %s, want %s", got, want)
		}
		p.replies(prompt, `{"stopReason":"end_turn"}`)
		s.wait(asked)
		_ = stop()
	})
}

func TestQuestionsOverTheLimitAreCancelledAndCounted(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		s.user.WatchQuestions(question.View{Agent: "a", For: s.user.Identity().Principal})
		asked := s.ask("x")
		p.begins("s1")
		prompt := p.wants("session/prompt")
		for i := range 17 {
			p.says(`{"jsonrpc":"2.0","id":%d,"method":"elicitation/create","params":{"sessionId":"s1","mode":"form","message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string"}}}}}`, i)
		}
		if got := p.answers("16"); got != `{"action":"cancel"}` || s.counted("editor.too_many_questions") != 1 {
			s.Errorf("got %s for the last, counted %d times; want it cancelled and counted once", got, s.counted("editor.too_many_questions"))
		}
		p.replies(prompt, `{"stopReason":"end_turn"}`)
		for i := range 16 {
			if got := p.answers(fmt.Sprint(i)); got != `{"action":"cancel"}` {
				s.Errorf("got %s for question %d, want it cancelled with the turn", got, i)
			}
		}
		s.wait(asked)
		_ = stop()
	})
}

func TestAPageIsShownToPeople(t *testing.T) {
	const page = `"mode":"url","message":"Log in","url":"https://example.com/login","elicitationId":"e1"`
	got := elicits(t, page, func(s *served, _ *peer) {
		if text, _ := s.answer(core.Reply{Selected: []string{"Done"}}); text != "Log in\nOpen this address if you trust it: https://example.com/login" {
			s.Errorf("got the question %q", text)
		}
	})
	if got != `{"action":"accept"}` {
		t.Errorf("got %s, want it accepted", got)
	}
	got = elicits(t, page, func(s *served, p *peer) {
		synctest.Wait()
		p.says(`{"jsonrpc":"2.0","method":"elicitation/complete","params":{"elicitationId":"e1"}}`)
	})
	if got != `{"action":"accept"}` {
		t.Errorf("got %s, want the page that was done with accepted", got)
	}
	got = elicits(t, page, func(s *served, p *peer) {
		synctest.Wait()
		p.says(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":0}}`)
	})
	if got != `the request was cancelled (code -32800)` {
		t.Errorf("got %s, want it cancelled", got)
	}
}

func TestAQuestionEndsWithTheTurn(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		s.user.WatchQuestions(question.View{Agent: "a", For: s.user.Identity().Principal})
		asked := s.ask("x")
		p.begins("s1")
		prompt := p.wants("session/prompt")
		p.says(`{"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"sessionId":"s1","mode":"form","message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string"}}}}}`)
		if n := len(s.questions()); n != 1 {
			s.Fatalf("%d questions are open, want one", n)
		}
		if err := s.user.Cancel(asked.ID(), "enough"); err != nil {
			s.Fatal(err)
		}
		p.wants("session/cancel")
		if got := p.answers("0"); got != `{"action":"cancel"}` {
			s.Errorf("got %s, want the question cancelled", got)
		}
		p.replies(prompt, `{"stopReason":"cancelled"}`)
		if n := len(s.questions()); n != 0 {
			s.Errorf("%d questions are open, want none", n)
		}
		_ = stop()
	})
}
