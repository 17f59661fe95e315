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
	g.post(answer, `{"selected":["Friday"]}`, "X-User: bob").refused(http.StatusNotFound, core.CodeUnknownTask)
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

// An agent may ask before the client can have read the list.
func TestAQuestionOfATaskWhoseSenderReadsQuestionsWaits(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a", func(c *core.Card) { c.Capabilities = []string{"ui"} })
	const body = `{"to":"a","content":"hi"}`
	g.post("/v1/tasks", body, "Dragoman-Questions: maybe").refused(http.StatusBadRequest, core.CodeInvalid, `Dragoman-Questions: "maybe": send read, or leave it out`)
	g.opened(body, "X-User: ann")
	task := a.accept()
	ask := func() *core.Fault {
		t.Helper()
		a.s.CallTool("c", "ask_user", []byte(`{"question":"Which day?"}`))
		for {
			b, err := a.s.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if b.Tool != nil {
				return b.Tool.Fault
			}
		}
	}
	if f := ask(); f == nil || f.Code != core.CodeUnsupported {
		t.Errorf("without the header: got %v, want %s", f, core.CodeUnsupported)
	}
	a.report(task, core.Done{})
	g.opened(body, "X-User: ann", "Dragoman-Questions: read")
	task = a.accept()
	a.s.CallTool("d", "ask_user", []byte(`{"question":"Which day?"}`))
	var got struct{ Questions []question.Question }
	g.get("/v1/questions?thread="+string(task.ID()), "X-User: ann").into(http.StatusOK, &got)
	if len(got.Questions) != 1 || got.Questions[0].Tasks[0] != task.ID() {
		t.Errorf("with the header: got %+v, want the question", got.Questions)
	}
	a.report(task, core.Done{})
}
