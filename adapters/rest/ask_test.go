package rest_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/rest"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

func TestATaskIsOpenedAndRead(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	shout := g.agent("shout")
	a := g.post("/v1/tasks", `{"to":"shout","content":"hello"}`)
	var o struct {
		ID      core.TaskID
		Thread  core.ThreadID
		Receipt core.Receipt
	}
	a.into(http.StatusCreated, &o)
	if got, want := a.header.Get("Location"), "/v1/tasks/"+string(o.ID); got != want {
		t.Errorf("got Location %q, want %q", got, want)
	}
	if o.Thread == "" || o.Receipt.Task != o.ID || o.Receipt.Stage != core.StageAccepted {
		t.Errorf("got thread %q and receipt %+v, want a thread and accepted", o.Thread, o.Receipt)
	}

	task := shout.accept()
	if d := g.document(o.ID); d.State != "running" || d.Agent != "shout" || d.Receipt.Stage != core.StageDelivered || d.Answer.End != "" {
		t.Errorf("got %+v, want it running at shout, delivered, without an end", d)
	}
	shout.report(task, core.Text{Text: "HEL"}, core.Usage{Input: 3, Output: 5}, core.File{Name: "a.txt", MediaType: "text/plain", Data: []byte("A")},
		core.Text{Text: "LO"}, core.Done{Data: json.RawMessage(`{"n":1}`), Truncated: true})
	d := g.document(o.ID)
	if d.State != "done" || d.Answer.End != "done" || d.Answer.Text != "HELLO" || string(d.Answer.Data) != `{"n":1}` || !d.Answer.Truncated ||
		d.Answer.TokensUsed != 8 || len(d.Answer.Files) != 1 || string(d.Answer.Files[0].Data) != "A" {
		t.Errorf("got %+v, want the whole answer", d)
	}
	if d.From.ID != operator || d.From.Dialect != rest.Name || d.Intent != "ask" || d.To != "shout" || d.Hops != 0 {
		t.Errorf("got %+v, want an ask of shout by %s", d, operator)
	}
}

func TestEveryFieldOfABodyReachesTheAgent(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a", func(c *core.Card) { c.Features |= core.FeatureOptions })
	before := time.Now()
	g.opened(`{"to":"a","intent":"delegate","content":"do","data":[1,null],"context":{"k":"v"},"thread":"th",
		"domain":"family.calendar","priority":"urgent","max_tokens":7,"options":{"mode":"plan","web":true,"turns":3},"deadline_ms":60000,"report_back":true,"keep":true,"receipt":"accepted",
		"attachments":[{"name":"n","media_type":"text/plain","data":"aGk="}]}`)
	task := a.accept()
	got := task.Request()
	if d := got.Deadline.Sub(before); d < 59*time.Second || d > 90*time.Second {
		t.Errorf("got a deadline in %s, want 60s", d)
	}
	got.Deadline = time.Time{}
	want := core.Request{
		Intent: core.IntentDelegate, To: core.ToAgent("a"), Thread: "th", Content: "do", Data: json.RawMessage(`[1,null]`), Context: json.RawMessage(`{"k":"v"}`),
		Domain: "family.calendar", Priority: core.PriorityUrgent, MaxTokens: 7, ReportBack: true, Options: core.Options{"mode": "plan", "web": "true", "turns": "3"},
		Attachments: []core.File{{Name: "n", MediaType: "text/plain", Data: []byte("hi")}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(core.Address{})); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	a.report(task, core.Done{})
}

func TestNullCountsAsAbsent(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a")
	g.opened(`{"to":"a","content":"do","data":null,"context":null,"deadline_ms":null,"keep":null,"thread":null,"attachments":null}`)
	task := a.accept()
	if r := task.Request(); r.Data != nil || r.Context != nil || r.Deadline.IsZero() {
		t.Errorf("got %+v, want no data, no context and the default deadline", r)
	}
	a.report(task, core.Done{})
}

func TestWaitReturnsTheOutcome(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	g.agent("a").answer(2, core.Text{Text: "yes"}, core.Done{})
	for _, query := range []string{"?wait=true", "?wait"} {
		var d taskJSON
		g.post("/v1/tasks"+query, `{"to":"a","content":"well?","keep":false}`).into(http.StatusOK, &d)
		if d.State != "done" || d.Answer.Text != "yes" {
			t.Errorf("%s: got %+v, want done with yes", query, d)
		}
	}
}

func TestWaitReturnsAFailure(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	g.agent("a").answer(1, core.Failed{Fault: core.NewFault(core.CodeBudget, "nothing left")})
	var d taskJSON
	g.post("/v1/tasks?wait=true", `{"to":"a","content":"well?"}`).into(http.StatusOK, &d)
	if d.State != "failed" || d.Answer.Fault == nil || d.Answer.Fault.Code != core.CodeBudget {
		t.Errorf("got %+v, want failed with budget", d)
	}
}

func TestADeadlineEndsATaskAsTimeout(t *testing.T) {
	g := start(t, hub.Options{Limits: hub.Limits{SlotGrace: time.Millisecond}}, rest.Options{})
	g.agent("silent")
	var d taskJSON
	g.post("/v1/tasks?wait=true", `{"to":"silent","content":"well?","deadline_ms":200}`).into(http.StatusOK, &d)
	if d.State != "failed" || d.Answer.Fault == nil || d.Answer.Fault.Code != core.CodeTimeout || d.Receipt.Stage != core.StageExpired {
		t.Errorf("got %+v, want failed with timeout, expired", d)
	}
}

func TestTheOptionsSetTheDefaultDeadline(t *testing.T) {
	g := start(t, hub.Options{Limits: hub.Limits{SlotGrace: time.Millisecond}}, rest.Options{Deadline: 20 * time.Millisecond})
	g.agent("silent")
	var d taskJSON
	g.post("/v1/tasks?wait=true", `{"to":"silent","content":"well?"}`).into(http.StatusOK, &d)
	if d.Answer.Fault == nil || d.Answer.Fault.Code != core.CodeTimeout {
		t.Errorf("got %+v, want a timeout", d.Answer)
	}
}

func TestARecordedReceiptIsGivenOnceTheJournalHasIt(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a")
	var o struct {
		ID      core.TaskID
		Receipt core.Receipt
	}
	g.post("/v1/tasks", `{"to":"a","content":"x","receipt":"recorded"}`).into(http.StatusCreated, &o)
	if o.Receipt.Stage != core.StageRecorded {
		t.Errorf("got a receipt of %s, want recorded", o.Receipt.Stage)
	}
	a.report(a.accept(), core.Done{})

	a.answer(1, core.Done{})
	var d taskJSON
	g.post("/v1/tasks?wait=true", `{"to":"a","content":"x","receipt":"recorded"}`).into(http.StatusOK, &d)
	if d.Receipt.Stage != core.StageRecorded || d.State != "done" {
		t.Errorf("got a receipt of %s for a task that is %s, want recorded and done", d.Receipt.Stage, d.State)
	}
}

func TestANoticeIsDoneOnceTheTransportAcceptsIt(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a")
	received := make(chan *core.Notice, 1)
	t.Cleanup(func() { close(received) })
	go func() { received <- a.accept().Request().Notice }()
	var d taskJSON
	g.post("/v1/notices?wait=true", `{"to":"a","topic":"door.open","data":{"who":"me"},"importance":"high"}`).into(http.StatusOK, &d)
	if d.State != "done" || d.Intent != "notify" || d.Receipt.Stage != core.StageDelivered {
		t.Errorf("got %+v, want a notice that was delivered", d)
	}
	want := &core.Notice{Topic: "door.open", Data: json.RawMessage(`{"who":"me"}`), Importance: core.ImportanceHigh}
	if diff := cmp.Diff(want, <-received); diff != "" {
		t.Errorf("notice (-want +got):\n%s", diff)
	}
	var o struct{ Receipt core.Receipt }
	answer := g.post("/v1/notices", `{"to":"a","topic":"door.shut"}`)
	answer.into(http.StatusCreated, &o)
	if o.Receipt.Stage != core.StageAccepted || answer.header.Get("Location") == "" {
		t.Errorf("got %+v, want accepted and a Location", o.Receipt)
	}
	a.accept()
}

func TestANoticeToAnAgentWithoutNoticesIsRefused(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	g.agent("deaf", func(c *core.Card) { c.Features = 0 })
	p := g.post("/v1/notices", `{"to":"deaf","topic":"t"}`).refused(http.StatusUnprocessableEntity, core.CodeUnsupported, "takes no notices")
	if p.Task == "" {
		t.Error("got no task, want the record of the refusal")
	}
}

func TestARequestToAnUnknownAgentIsRefusedWithTheNearestIDs(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	g.agent("shout")
	p := g.post("/v1/tasks", `{"to":"shuot","content":"x"}`).refused(http.StatusNotFound, core.CodeUnknownAgent, "shuot", "shout")
	if d := g.document(p.Task); d.State != "failed" || d.Receipt.Stage != core.StageRefused {
		t.Errorf("the record of the refusal: got %+v, want failed and refused", d)
	}
	g.post("/v1/tasks", `{"to":"shuot","content":"x"}`, "Accept: text/event-stream").refused(http.StatusNotFound, core.CodeUnknownAgent)
	g.post("/v1/tasks", `{"to":"domain:zoo","content":"x"}`).refused(http.StatusNotFound, core.CodeUnknownDomain, "zoo")
}

func TestARequestThatIsSentAgainUntilAnAgentIsHereLeavesNoTask(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	const body = `{"to":"shout","content":"x"}`
	g.post("/v1/tasks", body, "Dragoman-Asks: once").refused(http.StatusBadRequest, core.CodeInvalid, `Dragoman-Asks: "once": send again, or leave it out`)
	if p := g.post("/v1/tasks", body, "Dragoman-Asks: again").refused(http.StatusNotFound, core.CodeUnknownAgent); p.Task != "" {
		t.Errorf("got the task %s, want none", p.Task)
	}
	g.agent("shout")
	g.post("/v1/tasks", body, "Dragoman-Asks: again").into(http.StatusCreated, &struct{}{})
}

func TestAFullQueueIsOverloadedAndRetryable(t *testing.T) {
	g := start(t, hub.Options{Limits: hub.Limits{QueueLength: 1}}, rest.Options{})
	a := g.agent("a", func(c *core.Card) { c.MaxConcurrent = 1 })
	g.opened(`{"to":"a","content":"1"}`)
	queued := g.opened(`{"to":"a","content":"2"}`)
	if p := g.post("/v1/tasks", `{"to":"a","content":"3"}`).refused(http.StatusServiceUnavailable, core.CodeOverloaded); !p.Retryable {
		t.Error("Retryable: got false, want true")
	}
	if d := g.document(queued); d.State != "queued" {
		t.Errorf("got state %s, want queued", d.State)
	}
	a.answer(2, core.Done{})
	g.ended(queued)
}

func TestATaskThatIsNotKeptNeedsAnOpenConnection(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	g.agent("a")
	g.post("/v1/tasks", `{"to":"a","content":"x","keep":false}`).refused(http.StatusBadRequest, core.CodeInvalid, "?wait=true")
}

func TestARetriedTaskIsOneSequenceOfEvents(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	singer := func(c *core.Card) { c.Capabilities = []string{"sing"} }
	a, b := g.agent("a", singer), g.agent("b", singer)
	r := g.follow(http.MethodPost, "/v1/tasks", `{"to":"capability:sing","content":"la"}`, "Accept: text/event-stream")
	first := r.until(core.KindAssigned)
	who, other := a, b
	if first[len(first)-1].Body.(core.Assigned).Agent == "b" {
		who, other = b, a
	}
	who.report(who.accept(), core.Failed{Fault: core.NewFault(core.CodeOverloaded, "hoarse")})
	other.report(other.accept(), core.Text{Text: "la"}, core.Done{})
	if got, want := kinds(append(first, r.rest()...)), "opened assigned retrying assigned text done"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestATaskIsAskedAgainInItsConversationAsItWas(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a")
	first := g.opened(`{"to":"a","intent":"delegate","content":"do","data":12345678901234567890,"context":{"k":"v"},"priority":"urgent",
		"max_tokens":7,"attachments":[{"name":"n","data":"aGk="}]}`)
	task := a.accept()
	before := task.Request()
	a.report(task, core.Failed{Fault: core.NewFault(core.CodeUnreachable, "gone")})
	g.opened(`{"again":"` + string(first) + `"}`)
	task = a.accept()
	got := task.Request()
	if got.Thread != before.Thread || got.Thread == "" {
		t.Errorf("got conversation %q, want %q", got.Thread, before.Thread)
	}
	got.Deadline, got.Thread, before.Deadline, before.Thread = time.Time{}, "", time.Time{}, ""
	if diff := cmp.Diff(before, got, cmp.AllowUnexported(core.Address{})); diff != "" {
		t.Errorf("asked again (-want +got):\n%s", diff)
	}
	a.report(task, core.Done{})

	notice := g.post("/v1/notices", `{"to":"a","topic":"a.b"}`)
	var n struct{ ID core.TaskID }
	notice.into(http.StatusCreated, &n)
	hidden := g.opened(`{"to":"a","content":"the key is [redacted]"}`)
	for body, want := range map[string]string{
		`{"again":"` + string(first) + `","to":"a"}`: "leave out the rest", `{"again":"` + string(first) + `","options":{"mode":"plan"}}`: "leave out the rest", `{"again":"` + string(n.ID) + `"}`: "is a notice",
		`{"again":"` + string(hidden) + `"}`: "send it as a new request",
	} {
		g.post("/v1/tasks", body).refused(http.StatusBadRequest, core.CodeInvalid, want)
	}
	g.post("/v1/tasks", `{"again":"nothing"}`).refused(http.StatusNotFound, core.CodeUnknownTask, "nothing")
}
