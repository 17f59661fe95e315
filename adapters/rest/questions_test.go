package rest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/rest"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
)

func TestAQuestionIsListedForThoseWhoMayAnswerAndAnsweredOnce(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a", func(c *core.Card) { c.Capabilities = []string{"ui"} })
	viewer := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: "ann"}})
	t.Cleanup(func() { viewer.Close(nil) })
	path := "/v1/questions"
	list := func(who ...string) (all []question.Question) {
		t.Helper()
		var got struct{ Questions []question.Question }
		g.get(path, who...).into(http.StatusOK, &got)
		if got.Questions == nil {
			t.Error("got null, want a list")
		}
		return got.Questions
	}
	if got := list(); len(got) != 0 {
		t.Errorf("got %+v, want none", got)
	}
	g.opened(`{"to":"a","content":"hi","thread":"trip"}`, "X-User: ann")
	task := a.accept()
	viewer.WatchQuestions(question.View{Thread: "trip", For: core.Principal{ID: "ann"}})
	a.s.CallTool("c", "ask_user", []byte(`{"question":"Which day?","options":[{"label":"Monday","description":"the first"},{"label":"Friday"}],"multi_select":true,"header":"Day"}`))
	got := list("X-User: ann")
	if len(got) != 1 || got[0].Text != "Which day?" || got[0].Agent != "a" || len(got[0].Options) != 2 || got[0].Tasks[0] != task.ID() {
		t.Fatalf("got %+v, want the question", got)
	}
	if got := list("X-User: bob"); len(got) != 0 {
		t.Errorf("bob got %+v, want none", got)
	}
	for thread, want := range map[string]int{"trip": 1, "trip2": 0, string(task.ID()): 0} {
		path = "/v1/questions?thread=" + thread
		if got := list("X-User: ann"); len(got) != want {
			t.Errorf("%s: got %+v, want %d questions", path, got, want)
		}
	}
	g.get("/v1/questions?thread="+strings.Repeat("x", core.MaxIDBytes+1)).refused(http.StatusBadRequest, core.CodeInvalid, "?thread=: want at most")
	path = "/v1/questions"
	answer := "/v1/questions/" + got[0].ID + "/answer"
	g.post(answer, `{"selected":["Friday"]}`, "X-User: bob").refused(http.StatusForbidden, core.CodeNotAuthorized)
	g.post(answer, `{}`, "X-User: ann").refused(http.StatusBadRequest, core.CodeInvalid, "at least one selection or custom_text is required")
	g.post(answer, `{"selected":["Sunday"]}`, "X-User: ann").refused(http.StatusBadRequest, core.CodeInvalid, "none of the options")
	g.post(answer, `{"dismissed":true,"custom_text":"x"}`, "X-User: ann").refused(http.StatusBadRequest, core.CodeInvalid, "dismissed: it says that there is no answer")
	g.post(answer, `{"dismissed":true,"content":{}}`, "X-User: ann").refused(http.StatusBadRequest, core.CodeInvalid, "dismissed: it says that there is no answer")
	g.post(answer, `{"content":{"day":1}}`, "X-User: ann").refused(http.StatusBadRequest, core.CodeInvalid, "content: the question has no form")
	g.post("/v1/questions/none/answer", `{"dismissed":true}`).refused(http.StatusNotFound, core.CodeUnknownTask)
	var outcome question.Outcome
	g.post(answer, `{"selected":["Friday","Monday"],"custom_text":"or Sunday"}`, "X-User: ann").into(http.StatusOK, &outcome)
	if !outcome.Answered || len(outcome.Selected) != 2 || outcome.Text != "or Sunday" {
		t.Errorf("got %+v, want the answer", outcome)
	}
	g.post(answer, `{"selected":["Friday"]}`, "X-User: ann").refused(http.StatusConflict, core.CodeConflict, "has been settled")
	if got := list(); len(got) != 0 {
		t.Errorf("after the answer: got %+v, want none", got)
	}
	a.report(task, core.Done{})
}
