package native_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// attendTime is how long who has read the list of questions counts as present.
const attendTime = question.AttendTime

func TestPeopleAnswerTheQuestionsOfAnAgent(t *testing.T) {
	withHub(t, func(s *setup) {
		card := able("agent")
		card.Capabilities = []string{"ui"}
		agent, person := s.agent(card), s.peer("person")
		r := ask("agent", "?")
		r.Thread = "th"
		person.call(core.List{What: core.ListQuestions}, wire.With{Watch: true, Thread: "th"})
		id := person.open(r)
		ask := func() <-chan string {
			outcome := make(chan string, 1)
			go func() {
				v, err := agent.Call(s.Context(), core.CallTool{Tool: "ask_user", Input: json.RawMessage(`{"question":"Which?","options":[{"label":"red"},{"label":"blue"}]}`)}, wire.With{})
				outcome <- string(v.Get("output").Raw()) + errorText(err)
			}()
			return outcome
		}
		outcome := ask()
		told := person.others()
		if len(told) != 1 || !strings.Contains(told[0], `"question":"Which?"`) {
			t.Fatalf("got %v, want the question", told)
		}
		_, frame, _ := strings.Cut(told[0], " ")
		question := text(strictjson.ParseValid([]byte(frame)).Get("question", "id"))
		person.refused(core.Reply{Question: question, Selected: []string{"green"}}, wire.With{}, core.CodeInvalid)
		if v := person.call(core.Reply{Question: question, Selected: []string{"red"}}, wire.With{}); string(v.Get("outcome", "answered").Raw()) != "true" {
			t.Errorf("got %s, want it answered", v.Raw())
		}
		if got := <-outcome; got != `{"answered":true,"selected":["red"]}` {
			t.Errorf("got %s, want red", got)
		}
		if told := person.others(); len(told) != 1 || !strings.Contains(told[0], `"outcome":{"answered":true`) {
			t.Errorf("got %v, want how it ended", told)
		}
		person.call(core.List{What: core.ListQuestions}, wire.With{Stop: true, Thread: "th"})
		<-time.After(attendTime)
		if got := <-ask(); !strings.HasPrefix(got, "unsupported") {
			t.Errorf("got %s, want nobody to show the question to", got)
		}
		agent.report(id, core.Done{})
	})
}

func TestAnAgentAsksPeopleNoMoreThanTheyCanAnswer(t *testing.T) {
	withHub(t, func(s *setup) {
		card := able("agent")
		card.Capabilities = []string{"ui"}
		agent, person := s.raw(newPeer("agent")), s.peer("person")
		agent.send(`{"call":{"id":"1","act":"join","command":{"card":` + asJSON(card) + `}}}`)
		agent.next("result")
		r := ask("agent", "?")
		r.Thread = "th"
		person.call(core.List{What: core.ListQuestions}, wire.With{Watch: true, Thread: "th"})
		id := string(person.open(r))
		agent.next("event")
		agent.next("event")
		agent.send(`{"ask":{"id":"a","task":"` + id + `","question":{"question":7}}}`)
		agent.wantError(`"id":"a"`, "invalid", "ask: question: ")
		for i := range 17 {
			agent.send(fmt.Sprintf(`{"ask":{"id":"q%d","task":"%s","question":{"question":"Which?"}}}`, i, id))
		}
		agent.wantError(`"id":"q16"`, "overloaded", "16 questions wait for people already")
		shown := person.others()
		if len(shown) != 16 {
			t.Fatalf("got %d questions, want 16", len(shown))
		}
		_, frame, _ := strings.Cut(shown[0], " ")
		person.call(core.Reply{Question: text(strictjson.ParseValid([]byte(frame)).Get("question", "id")), Text: "red"}, wire.With{})
		agent.next("result")
		agent.send(`{"ask":{"id":"again","task":"` + id + `","question":{"question":"Which?"}}}`)
		if got := person.others(); len(got) != 2 { // how the first ended, and the new one
			t.Errorf("got %v, want room for a question again", got)
		}
		agent.send(`{"event":{"task":"` + id + `","kind":"done","body":{}}}`)
	})
}
