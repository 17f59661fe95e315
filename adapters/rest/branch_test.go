package rest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/rest"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// said returns the turns of a conversation in words.
func said(turns []core.Turn) string {
	var all []string
	for _, t := range turns {
		all = append(all, t.Role.String()+": "+t.Text)
	}
	return strings.Join(all, " | ")
}

func TestAConversationIsBranchedFromATask(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a")
	first := g.opened(`{"to":"a","content":"one?"}`)
	a.report(a.accept(), core.Text{Text: "1"}, core.Done{})
	thread := string(g.document(first).Thread)
	g.opened(`{"to":"a","content":"two?","thread":"` + thread + `"}`)
	a.report(a.accept(), core.Text{Text: "2"}, core.Done{})

	branched := g.opened(`{"to":"a","content":"and else?","branch":"` + string(first) + `"}`)
	task := a.accept()
	if got, want := said(task.Request().History), "user: one? | assistant: 1"; got != want {
		t.Errorf("got the history %q, want %q", got, want)
	}
	g.post("/v1/tasks", `{"to":"a","content":"go","branch":"`+string(branched)+`"}`).refused(http.StatusConflict, core.CodeConflict, "still runs")
	a.report(task, core.Failed{Fault: core.NewFault(core.CodeUnreachable, "gone")})
	if got := g.document(branched); got.Branch != first || string(got.Thread) == thread {
		t.Errorf("got conversation %q, branched from %q, want a new one that branched from %q", got.Thread, got.Branch, first)
	}
	again := g.opened(`{"again":"` + string(branched) + `"}`)
	task = a.accept()
	if got, want := said(task.Request().History), "user: one? | assistant: 1"; got != want || g.document(again).Branch != first {
		t.Errorf("asked again: got the history %q, branched from %q, want %q and %q", got, g.document(again).Branch, want, first)
	}
	a.report(task, core.Text{Text: "3"}, core.Done{})
	var read struct{ Turns []core.Turn }
	g.get("/v1/threads/"+string(g.document(again).Thread)).into(http.StatusOK, &read)
	if got, want := said(read.Turns), "user: one? | assistant: 1 | user: and else? | assistant: 3"; got != want {
		t.Errorf("got the turns %q, want %q", got, want)
	}

	g.post("/v1/tasks", `{"to":"a","content":"go","branch":"nothing"}`).refused(http.StatusNotFound, core.CodeUnknownTask, "nothing")
	g.post("/v1/tasks", `{"to":"a","content":"go","branch":"`+string(first)+`"}`, "X-User: eve").refused(http.StatusNotFound, core.CodeUnknownTask)
	g.post("/v1/tasks", `{"to":"a","content":"go","branch":"`+string(first)+`","thread":"t"}`).refused(http.StatusBadRequest, core.CodeInvalid, "leave out thread")
	g.post("/v1/tasks", `{"again":"`+string(first)+`","branch":"`+string(first)+`"}`).refused(http.StatusBadRequest, core.CodeInvalid, "leave out the rest")
	var n struct{ ID core.TaskID }
	g.post("/v1/notices", `{"to":"a","topic":"a.b"}`).into(http.StatusCreated, &n)
	a.s.Delivered(n.ID)
	g.ended(n.ID)
	g.post("/v1/tasks", `{"to":"a","content":"go","branch":"`+string(n.ID)+`"}`).refused(http.StatusBadRequest, core.CodeInvalid, "is a notice")
}
