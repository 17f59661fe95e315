package mcp_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/mcp"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// taskState is a task as a client gets it.
type taskState struct {
	Type     string                     `json:"resultType"`
	ID       string                     `json:"taskId"`
	Status   string                     `json:"status"`
	Message  string                     `json:"statusMessage"`
	Created  time.Time                  `json:"createdAt"`
	Updated  time.Time                  `json:"lastUpdatedAt"`
	TTL      int64                      `json:"ttlMs"`
	Poll     int64                      `json:"pollIntervalMs"`
	Requests map[string]json.RawMessage `json:"inputRequests"`
	Result   *outcome                   `json:"result"`
}

// state reads a task in a result.
func (a answer) state() (s taskState) {
	a.t.Helper()
	if err := json.Unmarshal(a.rpc(http.StatusOK).Result, &s); err != nil || s.ID == "" || s.Created.IsZero() || s.Updated.Before(s.Created) || s.TTL <= 0 {
		a.t.Fatalf("got %s, want a task", a.body)
	}
	return s
}

func tasksGet(capabilities, id string) string {
	return modern("tasks/get", capabilities, `"taskId":"`+id+`"`)
}

func tasksCancel(id string) string { return modern("tasks/cancel", canTasks, `"taskId":"`+id+`"`) }

func tasksUpdate(id, responses string) string {
	return modern("tasks/update", canBoth, `"taskId":"`+id+`","inputResponses":`+responses)
}

// quick are options with which a call soon becomes a task.
var quick = mcp.Options{TaskAfter: time.Millisecond}

// taskOf calls agent_ask and returns the task that the client gets.
func (g *testServer) taskOf(bob *testAgent, capabilities string) (*task.Task, taskState) {
	g.t.Helper()
	done := g.askLater(g.t.Context(), askBobModern(capabilities, ""))
	task := bob.next(core.KindAssigned)
	s := (<-done).state()
	if s.Type != "task" || s.ID != string(task.ID()) || s.Status != "working" || s.Poll <= 0 {
		g.t.Errorf("got %+v, want the task %s, which works", s, task.ID())
	}
	return task, s
}

func TestALongCallOfAClientWithTheTasksExtensionBecomesATask(t *testing.T) {
	t.Parallel()
	g := start(t, quick)
	bob := g.agent("bob")
	task, s := g.taskOf(bob, canTasks)
	if got := g.ask(tasksGet(canTasks, s.ID)).state(); got.Type != "complete" || got.Status != "working" || got.Result != nil {
		t.Errorf("right after: got %+v, want it working", got)
	}
	bob.report(task, core.Text{Text: "forty-"}, core.Text{Text: "two"}, core.File{Name: "a.png", MediaType: "image/png", Data: []byte("PNG")}, core.Done{})
	got := g.ask(tasksGet(canTasks, s.ID)).state()
	if got.Status != "completed" || got.Result == nil || got.Result.IsError || len(got.Result.Content) != 2 {
		t.Fatalf("after the end: got %+v, want the result of the call with its file", got)
	}
	got.Result.contains(t, false, `"text":"forty-two"`)
}

func TestATaskThatFailsIsCompletedWithAFailedResult(t *testing.T) {
	t.Parallel()
	g := start(t, quick)
	bob := g.agent("bob")
	task, s := g.taskOf(bob, canTasks)
	bob.report(task, core.Failed{Fault: core.NewFault(core.CodeOverloaded, "too much")})
	got := g.ask(tasksGet(canTasks, s.ID)).state()
	if got.Status != "completed" || got.Result == nil || got.Message != "overloaded: too much" {
		t.Fatalf("got %+v, want it completed with a failure", got)
	}
	got.Result.contains(t, true, "too much")
}

func TestATaskIsCancelledByItsClient(t *testing.T) {
	t.Parallel()
	g := start(t, quick)
	bob := g.agent("bob")
	task, s := g.taskOf(bob, canTasks)
	if r := g.ask(tasksCancel(s.ID)).result(); string(r["resultType"]) != `"complete"` {
		t.Errorf("got %v, want an empty result", r)
	}
	bob.next(core.KindCancelRequested)
	bob.report(task, core.Cancelled{Reason: "stopped"})
	if got := g.ask(tasksGet(canTasks, s.ID)).state(); got.Status != "cancelled" || got.Message != "stopped" || got.Result != nil {
		t.Errorf("got %+v, want it cancelled", got)
	}
	g.ask(tasksCancel(s.ID)).result() // again
	// A completed task stays completed.
	task, s = g.taskOf(bob, canTasks)
	bob.report(task, core.Done{Text: "42"})
	g.ask(tasksCancel(s.ID)).result()
	if got := g.ask(tasksGet(canTasks, s.ID)).state(); got.Status != "completed" {
		t.Errorf("got %+v, want it completed", got)
	}
}

func TestATaskOfSomebodyElseIsUnknown(t *testing.T) {
	t.Parallel()
	g := start(t, quick)
	bob, ann := g.agent("bob"), g.agent("ann")
	token, revoke := g.server.Issue(ann.Session)
	defer revoke()
	task, s := g.taskOf(bob, canTasks)
	unknown := "task " + `\"` + s.ID + `\" is unknown or has expired`
	for _, body := range []string{tasksGet(canTasks, s.ID), tasksCancel(s.ID), tasksUpdate(s.ID, `{}`)} {
		if a := g.post("/"+token, body, headersOf(body)...); a.status != http.StatusBadRequest || !strings.Contains(string(a.body), unknown) || !strings.Contains(string(a.body), "-32602") {
			t.Errorf("got %d %s, want an unknown task", a.status, a.body)
		}
	}
	g.ask(tasksGet(canTasks, "no-such-task")).fails(http.StatusBadRequest, -32602, "unknown or has expired")
	g.ask(modern("tasks/get", canTasks, `"taskId":""`), "Mcp-Name: ").fails(http.StatusBadRequest, -32020, "Mcp-Name")
	bob.report(task, core.Done{})
}

func TestAClientWithoutTheExtensionGetsNoTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &testServer{t: t, hub: coretest.NewHub(t, hub.Options{})}
		server := mcp.New(g.hub, mcp.Options{Anonymous: core.Principal{ID: "anybody"}})
		defer server.Close()
		bob := g.agent("bob")
		done := g.direct(server, askBobModern(canNothing, ""))
		task := bob.next(core.KindAssigned)
		(<-g.direct(server, tasksGet(canNothing, string(task.ID())))).fails(http.StatusBadRequest, -32021, "io.modelcontextprotocol/tasks")
		<-time.After(10 * mcp.DefaultTaskAfter)
		select {
		case a := <-done:
			t.Errorf("got %s, want no answer before the agent's", a.body)
		default:
		}
		bob.report(task, core.Done{Text: "42"})
		(<-done).outcome().contains(t, false, "42")
	})
}

func TestATaskWaitsForItsUser(t *testing.T) {
	t.Parallel()
	g := start(t, quick)
	bob := g.agent("bob", "ui")
	task, s := g.taskOf(bob, canBoth)
	bob.report(task, approval)
	got := g.ask(tasksGet(canBoth, s.ID)).state()
	if got.Status != "input_required" || !strings.Contains(string(got.Requests["t1"]), "asks to run rm") {
		t.Fatalf("got %+v, want it to wait for t1", got)
	}
	if got := g.ask(tasksGet(canTasks, s.ID)).state(); got.Status != "working" || got.Requests != nil || !strings.Contains(got.Message, "waits for the approval of rm") {
		t.Errorf("a client that cannot ask: got %+v, want it working, and why it takes so long", got)
	}
	g.ask(tasksUpdate(s.ID, `{"t1":{"action":"maybe"}}`)).fails(http.StatusBadRequest, -32602, "action")
	for _, responses := range []string{`{"t1":{"action":"accept","content":{"allow":true}},"other":{"action":"accept"}}`, `{"t1":{"action":"decline"}}`, `{}`} {
		if r := g.ask(tasksUpdate(s.ID, responses)).result(); len(r) != 2 || string(r["resultType"]) != `"complete"` {
			t.Errorf("got %v, want an empty result", r)
		}
	}
	if d := bob.decision(); !d.Approved {
		t.Errorf("got %+v, want the first answer", d)
	}
	if got := g.ask(tasksGet(canBoth, s.ID)).state(); got.Status != "working" {
		t.Errorf("got %+v, want it to work on", got)
	}
	// The same tool call once more has another key.
	bob.report(task, approval)
	if got := g.ask(tasksGet(canBoth, s.ID)).state(); got.Requests["t1#2"] == nil || len(got.Requests) != 1 {
		t.Errorf("got %+v, want another key than t1", got.Requests)
	}
	g.ask(tasksUpdate(s.ID, `{"t1":{"action":"accept","content":{"allow":true}}}`)).result()
	g.ask(tasksUpdate(s.ID, `{"t1#2":{"action":"decline"}}`)).result()
	if d := bob.decision(); d.Approved {
		t.Errorf("got %+v, want a denial: the answer of the first request is not one of the second", d)
	}
	// A question, though no request of the client is open.
	bob.CallTool("q", "ask_user", json.RawMessage(`{"question":"Which?"}`))
	var key string
	for key == "" {
		for k := range g.ask(tasksGet(canBoth, s.ID)).state().Requests {
			key = k
		}
	}
	g.ask(tasksUpdate(s.ID, `{"`+key+`":{"action":"accept","content":{"answer":"blue"}}}`)).result()
	if out := bob.toolOutput(); !strings.Contains(out, "blue") {
		t.Errorf("got %s, want blue", out)
	}
	bob.report(task, core.Done{})
}

func TestAnApprovalBeforeTheTaskMakesItOneAtOnce(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{TaskAfter: time.Hour})
	bob := g.agent("bob")
	done := g.askLater(t.Context(), askBobModern(canBoth, ""))
	task := bob.next(core.KindAssigned)
	bob.report(task, approval)
	s := (<-done).state()
	if s.Type != "task" || s.Status != "input_required" {
		t.Errorf("got %+v, want a task that waits", s)
	}
	g.ask(tasksUpdate(s.ID, `{"t1":{"action":"accept","content":{"allow":true}}}`)).result()
	bob.decision()
	bob.report(task, core.Done{})
}

func TestATaskContinuesWithoutItsClientAndATokenWithoutTasksDoesNot(t *testing.T) {
	t.Parallel()
	opts, ann := quick, core.Principal{ID: "ann", Authenticated: true, Proof: "secret"}
	opts.Authenticate = bearer("secret", &ann)
	g := start(t, opts)
	bob := g.agent("bob")
	body := askBobModern(canTasks, "")
	done := g.later(t.Context(), "", body, append(headersOf(body), "Authorization: Bearer secret")...)
	task := bob.next(core.KindAssigned)
	s := (<-done).state()
	g.hub.Expel(func(core.Principal) bool { return false })
	g.hub.Expel(func(core.Principal) bool { return true })
	bob.report(task, core.Text{Text: "still here"}, core.Done{})
	get := tasksGet(canTasks, s.ID)
	if got := g.post("", get, append(headersOf(get), "Authorization: Bearer secret")...).state(); got.Status != "completed" {
		t.Errorf("got %+v, want it completed", got)
	}
}

func TestAClientThatHangsUpBeforeItHasATaskCancelsTheCall(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{TaskAfter: time.Hour})
	bob := g.agent("bob")
	ctx, hangUp := contextWithCancel(t)
	done := g.askLater(ctx, askBobModern(canTasks, ""))
	task := bob.next(core.KindAssigned)
	hangUp()
	<-done
	if got := bob.next(core.KindCancelRequested); got != task {
		t.Errorf("got a cancel of %s, want one of %s", got.ID(), task.ID())
	}
	bob.report(task, core.Cancelled{})
}

func TestAClientIsNotifiedOfTheStatesOfItsTasks(t *testing.T) {
	t.Parallel()
	g := start(t, quick)
	bob := g.agent("bob")
	task, s := g.taskOf(bob, canBoth)
	listen := modern("subscriptions/listen", canBoth, `"notifications":{"toolsListChanged":true,"taskIds":["`+s.ID+`","unknown"]}`)
	stream := g.open(t.Context(), listen, headersOf(listen)...)
	if ack := stream.until("notifications/subscriptions/acknowledged"); !strings.Contains(string(ack.Params), `"notifications":{"toolsListChanged":true,"taskIds":["`+s.ID+`"]}`) {
		t.Errorf("got %s, want the tools and the known task", ack.Params)
	}
	next := func(status string) taskState {
		t.Helper()
		for {
			m := stream.until("notifications/tasks")
			var got taskState
			if err := json.Unmarshal(m.Params, &got); err != nil || got.ID != s.ID || !strings.Contains(string(m.Params), `"io.modelcontextprotocol/subscriptionId":1`) {
				t.Fatalf("got %s, want the task of the subscription", m.Params)
			}
			if got.Status == status {
				return got
			}
		}
	}
	next("working")
	bob.report(task, approval)
	if got := next("input_required"); got.Requests["t1"] == nil {
		t.Errorf("got %+v, want the request for t1", got)
	}
	g.ask(tasksUpdate(s.ID, `{"t1":{"action":"decline"}}`)).result()
	next("working")
	provide(t, bob.Session, packTool("forecast"))
	stream.until("notifications/tools/list_changed")
	bob.decision()
	bob.report(task, core.Done{Text: "42"})
	if got := next("completed"); got.Result == nil || !strings.Contains(got.Result.texts(), "42") {
		t.Errorf("got %+v, want the result", got)
	}
}

func TestACallBecomesATaskAfterTwoSecondsAndOutlivesItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &testServer{t: t, hub: coretest.NewHub(t, hub.Options{})}
		server := mcp.New(g.hub, mcp.Options{Anonymous: core.Principal{ID: "anybody"}})
		defer server.Close()
		bob := g.agent("bob")
		done := g.direct(server, askBobModern(canTasks, ""))
		task := bob.next(core.KindAssigned)
		began := time.Now()
		s := (<-done).state()
		if waited := time.Since(began); waited != mcp.DefaultTaskAfter {
			t.Errorf("got the task after %s, want %s", waited, mcp.DefaultTaskAfter)
		}
		if s.TTL < 600_000 {
			t.Errorf("got a time to live of %d ms, want more than the deadline", s.TTL)
		}
		bob.report(task, core.Done{})
	})
}

func TestClosingTheServerLeavesTasksToTheHubAndCancelsCallsThatWait(t *testing.T) {
	t.Parallel()
	g := start(t, quick)
	bob := g.agent("bob")
	followed, _ := g.taskOf(bob, canBoth)
	waiting, _ := g.needsApproval(bob)
	g.server.Close()
	if got := bob.next(core.KindCancelRequested); got != waiting {
		t.Errorf("got a cancel of %s, want one of %s, which waits for its client", got.ID(), waiting.ID())
	}
	bob.report(waiting, core.Cancelled{})
	bob.report(followed, core.Done{Text: "42"})
	if !followed.IsDone() {
		t.Errorf("got the followed task %s, want it done", followed.State())
	}
}
