package rest_test

import (
	"net/http"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/rest"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

func TestACancelReachesTheAgent(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a")
	for _, body := range []string{`{"reason":"enough"}`, ``, `{}`} {
		id := g.opened(`{"to":"a","content":"hi"}`)
		held := a.takes()
		var d task
		g.post("/v1/tasks/"+string(id)+"/cancel", body).into(http.StatusAccepted, &d)
		if d.ID != id || d.State != "running" {
			t.Errorf("got %+v, want it running still", d)
		}
		_, e := a.told(core.KindCancelRequested)
		if got := e.Body.(core.CancelRequested); got.By != operator || (body == `{"reason":"enough"}`) != (got.Reason == "enough") {
			t.Errorf("%s: got %+v, want it by %s for the reason", body, got, operator)
		}
		a.says(held, core.Cancelled{Reason: "as you wish"})
		if d := g.document(id); d.State != "cancelled" || d.Answer.Fault.Code != core.CodeCancelled {
			t.Errorf("got %+v, want cancelled", d)
		}
	}
}

func TestACancelOfAnAgentThatCannotBeToldEndsTheTaskAtOnce(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a", func(c *core.Card) { c.Features = 0 })
	id := g.opened(`{"to":"a","content":"hi"}`)
	a.takes()
	var d task
	g.post("/v1/tasks/"+string(id)+"/cancel", `{"reason":"enough"}`).into(http.StatusAccepted, &d)
	if d.State != "cancelled" || d.Answer.Fault.Message != "enough" {
		t.Errorf("got %+v, want cancelled: enough", d)
	}
}

func TestAnEndedTaskIsSteeredNoMore(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a")
	id := g.opened(`{"to":"a","content":"hi"}`)
	a.says(a.takes(), core.Done{})
	path := "/v1/tasks/" + string(id)
	g.post(path+"/cancel", ``).refused(http.StatusConflict, core.CodeConflict, "has ended")
	g.post(path+"/inject", `{"content":"x"}`).refused(http.StatusConflict, core.CodeConflict, "has ended")
	g.post(path+"/decisions", `{"id":"c","approved":true}`).refused(http.StatusConflict, core.CodeConflict, "has ended")
}

func TestAnUnknownTaskIsNotFound(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	for _, path := range []string{"/v1/tasks/none", "/v1/tasks/none/events"} {
		g.get(path).refused(http.StatusNotFound, core.CodeUnknownTask, "none")
	}
	g.post("/v1/tasks/none/cancel", ``).refused(http.StatusNotFound, core.CodeUnknownTask)
	g.post("/v1/tasks/none/inject", `{"content":"x"}`).refused(http.StatusNotFound, core.CodeUnknownTask)
	g.post("/v1/tasks/none/decisions", `{"id":"c","approved":true}`).refused(http.StatusNotFound, core.CodeUnknownTask)
}

func TestAnInjectionReachesTheAgent(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a")
	id := g.opened(`{"to":"a","content":"hi"}`)
	task := a.takes()
	var o struct {
		Task core.TaskID
		ID   string
	}
	g.post("/v1/tasks/"+string(id)+"/inject", `{"content":"psst","priority":"immediate","source":"system"}`).into(http.StatusAccepted, &o)
	_, e := a.told(core.KindInjected)
	want := core.Injected{ID: o.ID, Content: "psst", Priority: core.InjectionImmediate, Source: "system"}
	if e.Body != want || o.ID == "" || o.Task != id {
		t.Errorf("got %+v for %+v, want %+v", e.Body, o, want)
	}
	a.says(task, core.Done{})
}

func TestAnInjectionIsRefusedAtOnceByAnAgentThatTakesNone(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a", func(c *core.Card) { c.Features = core.FeatureStreaming })
	id := g.opened(`{"to":"a","content":"hi"}`)
	task := a.takes()
	g.post("/v1/tasks/"+string(id)+"/inject", `{"content":"psst"}`).refused(http.StatusUnprocessableEntity, core.CodeUnsupported, "agent a")
	a.says(task, core.Done{})
}

func TestTheFirstDecisionCounts(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a")
	id := g.opened(`{"to":"a","content":"hi"}`)
	task := a.takes()
	a.says(task, core.ApprovalRequested{ID: "c", Name: "rm", Input: "{}"})
	path := "/v1/tasks/" + string(id) + "/decisions"
	var d core.ApprovalDecided
	g.post(path, `{"id":"c","approved":false,"reason":"no"}`).into(http.StatusOK, &d)
	want := core.ApprovalDecided{ID: "c", By: operator, Reason: "no"}
	if _, e := a.told(core.KindApprovalDecided); e.Body != want || d != want {
		t.Errorf("got %+v told as %+v, want %+v", e.Body, d, want)
	}
	g.post(path, `{"id":"c","approved":true}`).refused(http.StatusConflict, core.CodeConflict, "decided before")
	g.post(path, `{"id":"other","approved":true}`).refused(http.StatusBadRequest, core.CodeInvalid, "other")
	a.says(task, core.Done{})
}

func TestSteeringNeedsTheRightBody(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a")
	path := "/v1/tasks/" + string(g.opened(`{"to":"a","content":"hi"}`))
	task := a.takes()
	for _, c := range []struct{ path, body, word string }{
		{"/cancel", `{"raeson":"x"}`, `did you mean "reason"?`},
		{"/cancel", `[`, ""},
		{"/inject", ``, "empty"},
		{"/inject", `{}`, "content: missing"},
		{"/inject", `{"content":"x","priority":"now"}`, "immediate"},
		{"/decisions", `{"approved":true}`, "id: missing"},
		{"/decisions", `{"id":"c"}`, "approved: missing"},
		{"/decisions", `{"id":"c","approved":"yes"}`, "want true or false"},
	} {
		g.post(path+c.path, c.body).refused(http.StatusBadRequest, core.CodeInvalid, c.word)
	}
	a.says(task, core.Done{})
}

func TestEventReplayCrossesSessionsOrUsers(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a")
	id := g.opened(`{"to":"a","content":"secret","thread":"th"}`, "X-User: ann")
	task := a.takes()
	path := "/v1/tasks/" + string(id)
	for _, get := range []string{path, path + "/events", path + "/events?from=1.1"} {
		g.get(get, "X-User: bob").refused(http.StatusForbidden, core.CodeNotAuthorized, "somebody else")
	}
	g.post(path+"/cancel", ``, "X-User: bob").refused(http.StatusForbidden, core.CodeNotAuthorized)
	g.post(path+"/inject", `{"content":"x"}`, "X-User: bob").refused(http.StatusForbidden, core.CodeNotAuthorized)
	g.post(path+"/decisions", `{"id":"c","approved":true}`, "X-User: bob").refused(http.StatusForbidden, core.CodeNotAuthorized)
	for _, get := range []string{"/v1/events", "/v1/usage"} {
		g.get(get, "X-User: bob").refused(http.StatusForbidden, core.CodeNotAuthorized, "operators")
	}
	a.says(task, core.Text{Text: "42"}, core.Done{})
	for user, want := range map[string]int{"ann": 2, "bob": 0, "": 2} {
		var th struct{ Turns []core.Turn }
		g.get("/v1/threads/th", "X-User: "+user).into(http.StatusOK, &th)
		if len(th.Turns) != want {
			t.Errorf("%q reads %d turns, want %d", user, len(th.Turns), want)
		}
	}
	g.get(path, "X-User: ann").into(http.StatusOK, &struct{}{})
	if d := g.document(id); d.From.ID != "ann" || !d.From.Authenticated {
		t.Errorf("got %+v, want ann", d.From)
	}
}
