package e2e

import (
	"encoding/json"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
)

func TestAPersonAnswersAQuestionFromTheCommandLine(t *testing.T) {
	s := newStage(t, nil)
	asker := connectCovenAgentWith(t, s, "asker", "ui")
	defer asker.leave()
	looker := s.service.Hub().Connect(hub.Identity{Principal: core.Principal{ID: "local"}})
	defer looker.Close(nil)
	looker.WatchQuestions(question.View{Agent: "asker", For: core.Principal{ID: "local"}})
	if code, out, complaint := s.typed(t, "questions"); code != command.ExitDone || out != "" || complaint != "there are no open questions\n" {
		t.Errorf("got %d, %q and %q, want nothing to wait", code, out, complaint)
	}
	input := map[string]any{
		"question": "Which day?", "multi_select": true, "options": []any{map[string]any{"label": "Monday"}, map[string]any{"label": "next Friday"}},
	}
	for _, c := range []struct {
		args []string
		said string
		told string
	}{
		{[]string{"next Friday"}, "next Friday", `{"answered":true,"selected":["next Friday"]}`},
		{[]string{"Monday", "next Friday", "--text", "or so"}, "Monday, next Friday, or so", `{"answered":true,"selected":["Monday","next Friday"],"custom_text":"or so"}`},
		{[]string{"--dismiss"}, "dismissed", `{"answered":false,"reason":"dismissed"}`},
	} {
		call := asker.call("ask_user", input)
		var b hub.Batch
		for b.Question == nil || b.Question.Outcome != nil { // how the last one ended comes too
			var err error
			if b, err = looker.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		id := b.Question.Question.ID
		var list struct{ Questions []question.Question }
		if err := json.Unmarshal([]byte(s.wants(t, command.ExitDone, id, "questions", "--json")), &list); err != nil || len(list.Questions) != 1 {
			t.Errorf("got %+v and %v, want one", list, err)
		}
		for _, want := range []string{id, "asker", "Which day?", `Monday, "next Friday"`} {
			s.wants(t, command.ExitDone, want, "questions")
		}
		s.wants(t, command.ExitUsage, "none of the options", "answer", id, "Sunday")
		s.wants(t, command.ExitUsage, "use exactly one of", "answer", id)
		s.wants(t, command.ExitUsage, "use exactly one of", "answer", id, "Monday", "--dismiss")
		s.wants(t, command.ExitDone, c.said, append([]string{"answer", id}, c.args...)...)
		if got := call.outcome(t); !sameJSON(got.Data, []byte(c.told)) {
			t.Errorf("%q: got %+v, want %s", c.args, got, c.told)
		}
		s.wants(t, command.ExitFailed, "has been settled", "answer", id, "Monday")
	}
	s.wants(t, command.ExitFailed, "waits for an answer", "answer", "none", "Monday")
}
