package e2e

import (
	"encoding/json"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
)

func TestQuestionsAreAnsweredFromTheCommandLine(t *testing.T) {
	h := newTestHub(t, nil)
	asker := connectCovenAgentWith(t, h, "asker", "ui")
	defer asker.leave()
	watcher := h.service.Hub().Connect(hub.Identity{Principal: core.Principal{ID: "local"}})
	defer watcher.Close(nil)
	watcher.WatchQuestions(question.View{Agent: "asker", For: core.Principal{ID: "local"}})
	if code, out, stderr := h.run(t, "questions"); code != command.ExitDone || out != "" || stderr != "there are no open questions\n" {
		t.Errorf("got %d, %q and %q, want nothing to wait", code, out, stderr)
	}
	input := map[string]any{
		"question": "Which day?", "multi_select": true, "options": []any{map[string]any{"label": "Monday"}, map[string]any{"label": "next Friday"}},
	}
	for _, c := range []struct {
		args    []string
		printed string
		result  string
	}{
		{[]string{"next Friday"}, "next Friday", `{"answered":true,"selected":["next Friday"]}`},
		{[]string{"Monday", "next Friday", "--text", "or so"}, "Monday, next Friday, or so", `{"answered":true,"selected":["Monday","next Friday"],"custom_text":"or so"}`},
		{[]string{"--dismiss"}, "dismissed", `{"answered":false,"reason":"dismissed"}`},
	} {
		call := asker.call("ask_user", input)
		var b hub.Batch
		for b.Question == nil || b.Question.Outcome != nil { // the outcome of the previous one comes too
			var err error
			if b, err = watcher.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		id := b.Question.Question.ID
		var list struct{ Questions []question.Question }
		if err := json.Unmarshal([]byte(h.wantOutput(t, command.ExitDone, id, "questions", "--json")), &list); err != nil || len(list.Questions) != 1 {
			t.Errorf("got %+v and %v, want one", list, err)
		}
		for _, want := range []string{id, "asker", "Which day?", `Monday, "next Friday"`} {
			h.wantOutput(t, command.ExitDone, want, "questions")
		}
		h.wantOutput(t, command.ExitUsage, "none of the options", "answer", id, "Sunday")
		h.wantOutput(t, command.ExitUsage, "say what to answer", "answer", id)
		h.wantOutput(t, command.ExitUsage, "stand alone", "answer", id, "Monday", "--dismiss")
		h.wantOutput(t, command.ExitDone, c.printed, append([]string{"answer", id}, c.args...)...)
		if got := call.wait(t); !sameJSON(got.Data, []byte(c.result)) {
			t.Errorf("%q: got %+v, want %s", c.args, got, c.result)
		}
		h.wantOutput(t, command.ExitFailed, "has been settled", "answer", id, "Monday")
	}
	h.wantOutput(t, command.ExitFailed, "waits for an answer", "answer", "none", "Monday")
}
