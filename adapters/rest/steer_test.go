package rest_test

import (
	"net/http"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/rest"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/quota"
	"github.com/dragoman-hub/dragoman/core/task"
)

func TestACancelReachesTheAgent(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a")
	for _, body := range []string{`{"reason":"enough"}`, ``, `{}`} {
		id := g.opened(`{"to":"a","content":"hi"}`)
		taken := a.accept()
		var d taskJSON
		g.post("/v1/tasks/"+string(id)+"/cancel", body).into(http.StatusAccepted, &d)
		if d.ID != id || d.State != "running" {
			t.Errorf("got %+v, want it still running", d)
		}
		_, e := a.next(core.KindCancelRequested)
		if got := e.Body.(core.CancelRequested); got.By != operator || (body == `{"reason":"enough"}`) != (got.Reason == "enough") {
			t.Errorf("%s: got %+v, want it by %s with the reason", body, got, operator)
		}
		a.report(taken, core.Cancelled{Reason: "as you wish"})
		if d := g.document(id); d.State != "cancelled" || d.Answer.Fault.Code != core.CodeCancelled {
			t.Errorf("got %+v, want cancelled", d)
		}
	}
}

func TestACancelEndsTheTaskOfAnAgentWithoutCancellationAtOnce(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a", func(c *core.Card) { c.Features = 0 })
	id := g.opened(`{"to":"a","content":"hi"}`)
	a.accept()
	var d taskJSON
	g.post("/v1/tasks/"+string(id)+"/cancel", `{"reason":"enough"}`).into(http.StatusAccepted, &d)
	if d.State != "cancelled" || d.Answer.Fault.Message != "enough" {
		t.Errorf("got %+v, want cancelled: enough", d)
	}
}

func TestAnEndedTaskCannotBeSteered(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a")
	id := g.opened(`{"to":"a","content":"hi"}`)
	a.report(a.accept(), core.Done{})
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
	task := a.accept()
	var o struct {
		Task core.TaskID
		ID   string
	}
	g.post("/v1/tasks/"+string(id)+"/inject", `{"content":"psst","priority":"immediate","source":"system"}`).into(http.StatusAccepted, &o)
	_, e := a.next(core.KindInjected)
	want := core.Injected{ID: o.ID, Content: "psst", Priority: core.InjectionImmediate, Source: operator, Claimed: "system"}
	if e.Body != want || o.ID == "" || o.Task != id {
		t.Errorf("got %+v for %+v, want %+v", e.Body, o, want)
	}
	a.report(task, core.Done{})
}

func TestAnInjectionThatIsWaitedForBeyondTheQuotaOfConnectionsIsNotGiven(t *testing.T) {
	table, err := policy.Compile([]policy.Rule{{Who: []string{"known"}, May: []core.Right{core.RightOperate, core.RightAsk, core.RightSee}}})
	if err != nil {
		t.Fatal(err)
	}
	g := start(t, hub.Options{Authorizer: table, Quotas: quota.NewBook(quota.Limits{Connections: 1})}, rest.Options{})
	a := g.agent("a")
	var opened struct{ ID core.TaskID }
	g.post("/v1/tasks", `{"to":"a","content":"hi","keep":true}`, "X-User: known").into(http.StatusCreated, &opened)
	task := a.accept()
	one := g.request(t.Context(), http.MethodGet, "/v1/events", "", "X-User: known")
	defer one.Body.Close()
	g.post("/v1/tasks/"+string(opened.ID)+"/inject?wait=true", `{"content":"psst"}`, "X-User: known").refused(http.StatusServiceUnavailable, core.CodeOverloaded, "quotas.connections")
	a.report(task, core.Done{})
	if got := task.Events(); len(got) != 3 {
		t.Errorf("got %d events of the task, want no injection among them", len(got))
	}
}

func TestAnInjectionIntoAnAgentWithoutInjectionIsRefused(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a", func(c *core.Card) { c.Features = core.FeatureStreaming })
	id := g.opened(`{"to":"a","content":"hi"}`)
	task := a.accept()
	g.post("/v1/tasks/"+string(id)+"/inject", `{"content":"psst"}`).refused(http.StatusUnprocessableEntity, core.CodeUnsupported, "agent a")
	a.report(task, core.Done{})
}

// digestOfNothing is the SHA-256 of {}.
const digestOfNothing = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"

func TestADecisionOnAnInputThatHasChangedIsAConflict(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a")
	id := g.opened(`{"to":"a","content":"hi"}`)
	at := a.accept()
	path := "/v1/tasks/" + string(id) + "/decisions"
	a.report(at, core.ApprovalRequested{ID: "c", Name: "rm", Input: "{}"})
	a.report(at, core.ApprovalRequested{ID: "c", Name: "rm", Input: `{"all":true}`})
	for _, body := range []string{`{"id":"c","approved":true,"input_sha256":"` + digestOfNothing + `"}`, `{"id":"c","approved":true}`} {
		g.post(path, body).refused(http.StatusConflict, core.CodeConflict, "read it and decide")
	}
	var waiting struct{ Approvals []task.PendingApproval }
	g.get("/v1/approvals").into(http.StatusOK, &waiting)
	if len(waiting.Approvals) != 1 || waiting.Approvals[0].Input != `{"all":true}` {
		t.Fatalf("got %+v, want the second input alone", waiting)
	}
	digest := waiting.Approvals[0].InputSHA256
	g.post(path, `{"id":"c","approved":true,"input_sha256":"`+digest+`"}`).into(http.StatusOK, &struct{}{})
	if _, e := a.next(core.KindApprovalDecided); e.Body.(core.ApprovalDecided).InputSHA256 != digest {
		t.Errorf("got %+v, want the digest of what was read", e.Body)
	}
	a.report(at, core.Done{})
}

func TestTheFirstDecisionCounts(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a")
	id := g.opened(`{"to":"a","content":"hi"}`)
	task := a.accept()
	a.report(task, core.ApprovalRequested{ID: "c", Name: "rm", Input: "{}"})
	path := "/v1/tasks/" + string(id) + "/decisions"
	var d core.ApprovalDecided
	g.post(path, `{"id":"c","approved":false,"reason":"no","input_sha256":"`+digestOfNothing+`"}`).into(http.StatusOK, &d)
	want := core.ApprovalDecided{ID: "c", By: operator, Reason: "no", InputSHA256: digestOfNothing}
	if _, e := a.next(core.KindApprovalDecided); e.Body != want || d != want {
		t.Errorf("got event %+v and answer %+v, want %+v", e.Body, d, want)
	}
	g.post(path, `{"id":"c","approved":true}`).refused(http.StatusConflict, core.CodeConflict, "decided before")
	g.post(path, `{"id":"other","approved":true}`).refused(http.StatusBadRequest, core.CodeInvalid, "other")
	a.report(task, core.Done{})
}

func TestSteeringNeedsAValidBody(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a")
	path := "/v1/tasks/" + string(g.opened(`{"to":"a","content":"hi"}`))
	task := a.accept()
	for _, c := range []struct{ path, body, word string }{
		{"/cancel", `{"raeson":"x"}`, `did you mean "reason"?`},
		{"/cancel", `[`, ""},
		{"/inject", ``, "empty"},
		{"/inject", `{}`, "content: missing"},
		{"/inject", `{"content":"x","priority":"now"}`, "immediate"},
		{"/decisions", `{"approved":true}`, "id: missing"},
		{"/decisions", `{"id":"c"}`, "approved: missing"},
		{"/decisions", `{"id":"c","approved":"yes"}`, "want true or false"},
		{"/decisions", `{"id":"c","approved":false,"all":true}`, "all: it approves all"},
		{"/inject?wait=perhaps", `{"content":"x"}`, "true or false"},
	} {
		g.post(path+c.path, c.body).refused(http.StatusBadRequest, core.CodeInvalid, c.word)
	}
	a.report(task, core.Done{})
}

func TestEventReplayCrossesSessionsOrUsers(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a")
	id := g.opened(`{"to":"a","content":"secret","thread":"th"}`, "X-User: ann")
	task := a.accept()
	path := "/v1/tasks/" + string(id)
	for _, get := range []string{path, path + "/events", path + "/events?from=1.1"} {
		g.get(get, "X-User: bob").refused(http.StatusNotFound, core.CodeUnknownTask, "somebody else")
	}
	g.post(path+"/cancel", ``, "X-User: bob").refused(http.StatusNotFound, core.CodeUnknownTask)
	g.post(path+"/inject", `{"content":"x"}`, "X-User: bob").refused(http.StatusNotFound, core.CodeUnknownTask)
	g.post(path+"/decisions", `{"id":"c","approved":true}`, "X-User: bob").refused(http.StatusNotFound, core.CodeUnknownTask)
	for _, get := range []string{"/v1/events", "/v1/usage"} {
		g.get(get, "X-User: bob").refused(http.StatusForbidden, core.CodeNotAuthorized, "operators")
	}
	a.report(task, core.Text{Text: "42"}, core.Done{})
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

func TestAClientMayWaitForTheAnswerToItsInjection(t *testing.T) {
	for _, c := range []struct {
		name     string
		outcome  func(id string) core.Body
		accepted *bool
		reason   string
	}{
		{"accepted", func(id string) core.Body { return core.InjectionAnswered{ID: id, Accepted: true} }, new(true), ""},
		{"refused", func(id string) core.Body { return core.InjectionAnswered{ID: id, Reason: "too long"} }, new(false), "too long"},
		{"never answered", func(string) core.Body { return core.Done{} }, nil, "the task ended before the agent answered"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := start(t, hub.Options{}, rest.Options{})
			a := g.agent("a")
			id := g.opened(`{"to":"a","content":"hi"}`)
			task := a.accept()
			answered := make(chan answer, 1)
			go func() {
				answered <- g.post("/v1/tasks/"+string(id)+"/inject?wait=true", `{"id":"i1","content":"psst"}`)
			}()
			_, e := a.next(core.KindInjected)
			a.report(task, core.InjectionAnswered{ID: "another", Accepted: true}, c.outcome(e.Body.(core.Injected).ID))
			var got struct {
				Task     core.TaskID
				ID       string
				Accepted *bool
				Reason   string
			}
			(<-answered).into(http.StatusOK, &got)
			if got.Task != id || got.ID != "i1" || got.Reason != c.reason || (got.Accepted == nil) != (c.accepted == nil) || got.Accepted != nil && *got.Accepted != *c.accepted {
				t.Errorf("got %+v, want accepted %v because %q", got, c.accepted, c.reason)
			}
			if c.accepted != nil {
				a.report(task, core.Done{})
			}
		})
	}
}

func TestApprovalsAreListedForThoseWhoMayDecide(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a", func(c *core.Card) { c.MaxConcurrent = 2 })
	list := func(who ...string) (all []task.PendingApproval) {
		t.Helper()
		var got struct{ Approvals []task.PendingApproval }
		g.get("/v1/approvals", who...).into(http.StatusOK, &got)
		if got.Approvals == nil {
			t.Error("got null, want a list")
		}
		return got.Approvals
	}
	if got := list(); len(got) != 0 {
		t.Errorf("got %+v, want none", got)
	}
	id := g.opened(`{"to":"a","content":"hi"}`, "X-User: ann")
	task := a.accept()
	a.report(task, core.ApprovalRequested{ID: "c", Name: "rm", Input: `{"all":true}`})
	for _, who := range []string{"X-User: ann", "X-User: "} {
		got := list(who)
		if len(got) != 1 || got[0].Task != id || got[0].ID != "c" || got[0].Name != "rm" || got[0].Input != `{"all":true}` || got[0].Agent != "a" || got[0].From.ID != "ann" {
			t.Fatalf("%s: got %+v, want the call of rm", who, got)
		}
		if wait := got[0].Until.Sub(got[0].Since); wait != g.hub.Limits().QuestionTimeout {
			t.Errorf("got a timeout of %s, want %s", wait, g.hub.Limits().QuestionTimeout)
		}
	}
	if got := list("X-User: bob"); len(got) != 0 {
		t.Errorf("bob got %+v, want none", got)
	}
	g.post("/v1/tasks/"+string(id)+"/decisions", `{"id":"c","approved":true}`).into(http.StatusOK, &struct{}{})
	if got := list(); len(got) != 0 {
		t.Errorf("after the decision: got %+v, want none", got)
	}
	a.report(task, core.Done{})
}

func TestADecisionNeedsTheRightToApproveAlone(t *testing.T) {
	table, err := policy.Compile([]policy.Rule{{Who: []string{"carol"}, May: []core.Right{core.RightApprove}, To: []string{"*"}}})
	if err != nil {
		t.Fatal(err)
	}
	g := start(t, hub.Options{Authorizer: table}, rest.Options{})
	a := g.agent("a")
	id := g.opened(`{"to":"a","content":"hi"}`)
	at := a.accept()
	a.report(at, core.ApprovalRequested{ID: "c", Name: "rm", Input: "{}"})
	path := "/v1/tasks/" + string(id)
	g.get(path, "X-User: carol").refused(http.StatusForbidden, core.CodeNotAuthorized)
	g.post(path+"/decisions", `{"id":"c","approved":true}`, "X-User: bob").refused(http.StatusNotFound, core.CodeUnknownTask)
	g.post(path+"/inject", `{"content":"x"}`, "X-User: carol").refused(http.StatusForbidden, core.CodeNotAuthorized)
	g.post(path+"/decisions", `{"id":"c","approved":true}`, "X-User: carol").into(http.StatusOK, &struct{}{})
	if _, e := a.next(core.KindApprovalDecided); e.Body.(core.ApprovalDecided).By != "carol" {
		t.Errorf("got %+v, want a decision by carol", e.Body)
	}
	a.report(at, core.Done{})
}
