package pi_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/pitest"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// heldAgent is an agent that starts every answer and leaves the rest to the test.
type heldAgent struct {
	tasks    chan *task.Task
	requests chan core.Body
}

func newHeldAgent() *heldAgent {
	return &heldAgent{make(chan *task.Task, 16), make(chan core.Body, 16)}
}

func (w *heldAgent) work(a *testAgent, b hub.Batch) {
	if assigned(b) {
		a.report(b.Task, core.Text{Text: "begun"})
		w.tasks <- b.Task
	}
	for _, e := range b.Events {
		switch e.Body.(type) {
		case core.Injected, core.CancelRequested, core.ApprovalDecided:
			w.requests <- e.Body
		}
	}
}

// busy is the error of a prompt while another runs.
const busy = "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message."

func TestASecondPromptFailsWithoutAQueueingBehavior(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a"}, w.work)
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "a")
	c.send(`{"id":"p1","type":"prompt","sessionId":"s","message":"one"}`)
	first := <-w.tasks
	c.fails(`{"id":"p2","type":"prompt","sessionId":"s","message":"two"}`, busy)
	c.ok(`{"id":"p3","type":"prompt","sessionId":"s","message":"three","streamingBehavior":"followUp"}`)
	c.ok(`{"id":"p4","type":"prompt","sessionId":"s","message":"four","streamingBehavior":"steer"}`)
	a.report(first, core.Done{})
	for _, want := range []string{"four", "three"} { // steering messages go first
		next := <-w.tasks
		if got := next.Request().Content; got != want {
			t.Errorf("next turn: got %q, want %q", got, want)
		}
		a.report(next, core.Done{})
	}
	c.until(`"response"`, `"p1"`, `"success":true`)
	want := strings.Fields(`agent_start turn_start message_start message_end
		message_start message_update/text_start message_update/text_delta message_update/text_end message_end turn_end
		turn_start message_start message_end
		message_start message_update/text_start message_update/text_delta message_update/text_end message_end turn_end
		turn_start message_start message_end
		message_start message_update/text_start message_update/text_delta message_update/text_end message_end turn_end
		agent_end`)
	if diff := cmp.Diff(want, ofTheRun(c.transcript("s"))); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// ofTheRun omits queue updates, which are not part of the run.
func ofTheRun(t *pitest.Transcript) []string {
	return slices.DeleteFunc(t.Kinds, func(kind string) bool { return kind == "queue_update" })
}

func TestASecondPromptWaitsIfPromptsAreQueued(t *testing.T) {
	h, s := newServer(t, pi.Options{Commands: command.Options{QueuePrompts: true}})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a"}, w.work)
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "a")
	c.send(`{"id":"p1","type":"prompt","sessionId":"s","message":"one"}`)
	c.send(`{"id":"p2","type":"prompt","sessionId":"s","message":"two"}`)
	a.report(<-w.tasks, core.Done{})
	second := <-w.tasks
	if got := second.Request().Content; got != "two" {
		t.Errorf("got %q, want two", got)
	}
	a.report(second, core.Done{})
	c.until(`"response"`, `"p2"`, `"success":true`)
	order := []string{}
	for _, f := range c.received() {
		for _, k := range []string{`"command_started","data":{"commandId":"p`, `"command_finished","data":{"commandId":"p`} {
			if has(f, k) {
				i := strings.Index(string(f.Raw), `"commandId":"`) + len(`"commandId":"`)
				order = append(order, f.Type+" "+string(f.Raw[i:i+2]))
			}
		}
	}
	want := []string{"command_started p1", "command_finished p1", "command_started p2", "command_finished p2"}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestALaneRunsOneCommandAtATimeAndControlOvertakesIt(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a", Name: "Ann"}, w.work)
	joinAgent(t, h, core.Card{ID: "b"}, echoAgent)
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "a")
	c.send(`{"id":"p","type":"prompt","sessionId":"s","message":"one"}`)
	task := <-w.tasks
	c.send(`{"id":"m","type":"set_model","sessionId":"s","provider":"coven","modelId":"b"}`)
	if f := c.ok(`{"type":"get_state","sessionId":"s"}`); !has(f, `"isStreaming":true`) || !has(f, `"id":"a"`) {
		t.Errorf("get_state in the middle of a run: got %s, want it streaming with model a", f.Data)
	}
	if c.count("command_started", `"commandId":"m"`) != 0 {
		t.Error("set_model overtook the prompt, want it to wait in the lane")
	}
	a.report(task, core.Done{})
	c.until(`"response"`, `"id":"m"`, `"success":true`)
	if f := c.ok(`{"type":"get_state","sessionId":"s"}`); !has(f, `"isStreaming":false`) || !has(f, `"model":{"id":"b"`) {
		t.Errorf("get_state after it: got %s, want it idle with model b", f.Data)
	}
}

func TestAbortEndsTheRunAsAborted(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a", Features: core.FeatureCancellation}, w.work)
	c := dial(t, s, pi.ConnOptions{Principal: core.Principal{ID: "ann"}})
	c.open("s", "a")
	c.ok(`{"type":"abort","sessionId":"s"}`) // without a run it does nothing
	c.send(`{"id":"p","type":"prompt","sessionId":"s","message":"one"}`)
	task := <-w.tasks
	c.ok(`{"type":"follow_up","sessionId":"s","message":"later"}`)
	other := dial(t, s, pi.ConnOptions{Principal: core.Principal{ID: "bob"}}) // any client of the session may abort
	other.ok(`{"id":"x","type":"abort","sessionId":"s"}`)
	if got, want := <-w.requests, (core.CancelRequested{By: "bob"}); got != want {
		t.Errorf("the agent got %+v, want %+v", got, want)
	}
	a.report(task, core.Cancelled{})
	if f := c.until(`"response"`, `"id":"p"`); !f.Success {
		t.Errorf("the aborted prompt: got failure %q, want success", f.Error)
	}
	tr := c.transcript("s")
	if tr.StopReason != render.StopAborted || tr.Snapshots != "begun" {
		t.Errorf("got stop reason %q and text %q, want aborted and begun", tr.StopReason, tr.Snapshots)
	}
	// Queued messages wait for the next run.
	c.send(`{"id":"q","type":"prompt","sessionId":"s","message":"two"}`)
	a.report(<-w.tasks, core.Done{})
	if got := (<-w.tasks); got.Request().Content != "later" {
		t.Errorf("got %q, want the queued message", got.Request().Content)
	} else {
		a.report(got, core.Done{})
	}
	c.until(`"response"`, `"id":"q"`)
}

func TestSteerIsInjectedIfTheAgentTakesItAndElseQueued(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a", Features: core.FeatureInjection}, w.work)
	c := dial(t, s, pi.ConnOptions{Principal: core.Principal{ID: "ann"}})
	c.open("s", "a")
	c.send(`{"id":"p","type":"prompt","sessionId":"s","message":"one"}`)
	task := <-w.tasks
	c.ok(`{"type":"steer","sessionId":"s","message":"left"}`)
	c.ok(`{"type":"steer","sessionId":"s","message":"right"}`)
	for i, want := range []string{"left", "right"} {
		in, ok := (<-w.requests).(core.Injected)
		if !ok || in.Content != want || in.Priority != core.InjectionImmediate || in.Source != "ann" {
			t.Errorf("injection: got %+v, want %q", in, want)
		}
		a.report(task, core.InjectionAnswered{ID: in.ID, Accepted: i == 0})
	}
	a.report(task, core.Text{Text: "turned"}, core.Done{})
	refused := <-w.tasks // a refused injection becomes the next turn
	if got := refused.Request().Content; got != "right" {
		t.Errorf("got %q, want the refused injection", got)
	}
	a.report(refused, core.Done{})
	c.until(`"response"`, `"id":"p"`)
	if got := roles(t, c, "s"); got != "user:one assistant:begun user:left assistant:turned user:right assistant:begun" {
		t.Errorf("messages: got %s", got)
	}
}

// roles returns the messages of a session in brief.
func roles(t *testing.T, c *testClient, session string) string {
	t.Helper()
	var parts []string
	for _, m := range messagesOf(t, c, session) {
		parts = append(parts, m.Role+":"+m.Text())
	}
	return strings.Join(parts, " ")
}

func TestMessagesSteeredIntoAnIdleSessionGoWithTheNextPrompt(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	joinAgent(t, h, core.Card{ID: "a"}, echoAgent)
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "a")
	c.ok(`{"type":"steer","sessionId":"s","message":"in verse"}`)
	c.ok(`{"type":"follow_up","sessionId":"s","message":"and again"}`)
	c.ok(`{"type":"prompt","sessionId":"s","message":"speak"}`)
	want := "user:speak user:in verse assistant:you said speak\n\nin verse user:and again assistant:you said and again"
	if got := roles(t, c, "s"); got != want {
		t.Errorf("messages:\n got %s\nwant %s", got, want)
	}
}

func TestAnAgentFailureDoesNotFailTheCommand(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	joinAgent(t, h, core.Card{ID: "a"}, answerWith(core.Text{Text: "half"}, core.Failed{Fault: core.NewFault(core.CodeInternal, "boom")}))
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "a")
	c.ok(`{"type":"prompt","sessionId":"s","message":"x"}`)
	tr := c.transcript("s")
	if tr.StopReason != render.StopError || tr.ErrorMessage != "boom" {
		t.Errorf("got %q %q, want error and boom", tr.StopReason, tr.ErrorMessage)
	}
	c.ok(`{"type":"create_session","sessionId":"t","agent":"nobody"}`)
	c.fails(`{"type":"prompt","sessionId":"t","message":"x"}`, `no agent "nobody" is here`)
	if c.count(`"agent_start"`) != 1 {
		t.Error("a prompt that the hub refused began a run")
	}
}

func TestAnAgentCutOffMidAnswerFailsTheRun(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a"}, w.work)
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "a")
	c.send(`{"id":"p","type":"prompt","sessionId":"s","message":"x"}`)
	<-w.tasks
	c.ok(`{"type":"follow_up","sessionId":"s","message":"later"}`)
	a.Close(nil)
	c.until(`"response"`, `"id":"p"`, `"success":true`)
	if tr := c.transcript("s"); tr.StopReason != render.StopError || tr.Snapshots != "begun" {
		t.Errorf("got %q and %q, want error after the partial text", tr.StopReason, tr.Snapshots)
	}
}

func TestATurnThatTheHubRefusesEndsTheRunInAnError(t *testing.T) {
	h, s := newServerOn(t, hub.Options{Limits: hub.Limits{RequestBytes: 2000}}, pi.Options{})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a"}, w.work)
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "a")
	c.send(`{"id":"p","type":"prompt","sessionId":"s","message":"x"}`)
	task := <-w.tasks
	c.ok(`{"type":"follow_up","sessionId":"s","message":"` + strings.Repeat("y", 2000) + `"}`)
	a.report(task, core.Done{})
	c.until(`"response"`, `"id":"p"`, `"success":true`)
	tr := c.transcript("s")
	if tr.StopReason != render.StopError || !strings.Contains(tr.ErrorMessage, "the limit is 2000") {
		t.Errorf("got %q %q, want the hub's refusal", tr.StopReason, tr.ErrorMessage)
	}
	want := strings.Fields("turn_end queue_update turn_start message_start message_end message_start message_end turn_end agent_end")
	if diff := cmp.Diff(want, tr.Kinds[len(tr.Kinds)-len(want):]); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestAPromptThatTakesTooLongTimesOut(t *testing.T) {
	for _, tt := range []struct {
		set, limit time.Duration
		want       string
	}{
		{0, 10 * time.Minute, "Command 'prompt' timed out after 600000ms"}, // of silence,
		{1500 * time.Millisecond, 1500 * time.Millisecond, "Command 'prompt' timed out after 1500ms"},
	} {
		synctest.Test(t, func(t *testing.T) {
			h, s := newServer(t, pi.Options{Commands: command.Options{PromptTimeout: tt.set}})
			joinAgent(t, h, core.Card{ID: "a", MaxConcurrent: 2}, func(*testAgent, hub.Batch) {})
			joinAgent(t, h, core.Card{ID: "b"}, answerWith(core.Failed{Fault: core.NewFault(core.CodeTimeout, "the model timed out")}))
			c := dial(t, s, pi.ConnOptions{})
			c.open("s", "a")
			begun := time.Now()
			f := c.doUnlimited(`{"type":"prompt","sessionId":"s","message":"x"}`)
			if f.Success || !f.TimedOut || f.Error != tt.want {
				t.Errorf("got %s, want a timeout", f.Raw)
			}
			if got := time.Since(begun); got != tt.limit {
				t.Errorf("the prompt took %v, want %v", got, tt.limit)
			}
			// A timeout of the agent itself is a failure of the agent.
			c.open("t", "b")
			c.ok(`{"type":"prompt","sessionId":"t","message":"x"}`)
		})
	}
}

func TestImagesOfAPromptAreAttachments(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a", Features: core.FeatureFiles}, w.work)
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "a")
	c.send(`{"id":"p","type":"prompt","sessionId":"s","message":"what is it","images":[{"type":"image","data":"AQI=","mimeType":"image/png"}]}`)
	task := <-w.tasks
	want := []core.File{{Name: "image-1", MediaType: "image/png", Data: []byte{1, 2}}}
	if diff := cmp.Diff(want, task.Request().Attachments); diff != "" {
		t.Errorf("attachments (-want +got):\n%s", diff)
	}
	a.report(task, core.Done{})
	c.until(`"response"`, `"id":"p"`)
	c.until(`"role":"user"`, `"mimeType":"image/png"`)
	c.fails(`{"type":"prompt","sessionId":"s","message":"x","images":[{"data":"?"}]}`, "images[0].data: want base64")
	c.fails(`{"type":"prompt","sessionId":"s","message":"x","images":[7]}`, "images[0]: want an object with data and mimeType")
	c.fails(`{"type":"prompt","sessionId":"s","message":"x","images":{"data":"AQI=","mimeType":"image/png"}}`, "images: want an array of images, each an object with data and mimeType")
}

func TestAnApprovalIsAnsweredOnceByAnyClientOfTheSession(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a", Features: core.FeatureApprovals}, w.work)
	c, other := dial(t, s, pi.ConnOptions{}), dial(t, s, pi.ConnOptions{Principal: core.Principal{ID: "bob"}})
	c.open("dotted.name", "a")
	c.open("t", "a")
	c.send(`{"id":"p","type":"prompt","sessionId":"dotted.name","message":"x"}`)
	task := <-w.tasks
	a.report(task, core.ToolCall{ID: "k", Name: "rm", Input: "{}"}, core.ApprovalRequested{ID: "k", Name: "rm", Input: "{}"})
	c.until("extension_ui_request", "confirm")
	id := c.transcript("dotted.name").UIRequests[0].RequestID
	respond := func(session, id, response string) string {
		return `{"type":"extension_ui_response","sessionId":"` + session + `","requestId":"` + id + `","response":` + response + `}`
	}
	yes := `{"method":"confirm","confirmed":true}`
	c.fails(respond("dotted.name", "nobody:1", yes), "No pending UI request with id nobody:1")
	c.fails(respond("dotted.name", string(task.ID())+":1", yes), "No pending UI request with id "+string(task.ID())+":1")
	c.fails(respond("t", id, yes), "Session ID mismatch for request "+id)
	other.ok(respond("dotted.name", id, yes))
	d, _ := (<-w.requests).(core.ApprovalDecided)
	if !d.Approved || d.ID != "k" || d.By != "bob" {
		t.Errorf("the agent got %+v, want k approved by bob", d)
	}
	c.fails(respond("dotted.name", id, yes), "Request "+id+" already settled")
	c.until("notify", "rm: approved by bob")
	a.report(task, core.ApprovalRequested{ID: "l", Name: "mv", Input: "{}"})
	c.until("extension_ui_request", "Allow mv?")
	id = c.transcript("dotted.name").UIRequests[2].RequestID
	c.ok(respond("dotted.name", id, `{"method":"cancelled"}`))
	if d, _ = (<-w.requests).(core.ApprovalDecided); d.Approved || d.ID != "l" {
		t.Errorf("the agent got %+v, want l denied", d)
	}
	a.report(task, core.Done{})
	c.until(`"response"`, `"id":"p"`)
}

func TestARetryOfTheHubIsShown(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	failing := answerWith(core.Failed{Fault: core.NewFault(core.CodeUnreachable, "down")})
	joinAgent(t, h, core.Card{ID: "a", Capabilities: []string{"x"}}, failing)
	joinAgent(t, h, core.Card{ID: "b", Capabilities: []string{"x"}}, failing)
	joinAgent(t, h, core.Card{ID: "c", Capabilities: []string{"x"}}, failing)
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "capability:x")
	c.ok(`{"type":"prompt","sessionId":"s","message":"x"}`)
	kinds := c.transcript("s").Kinds
	if i, j := slices.Index(kinds, "auto_retry_start"), slices.Index(kinds, "auto_retry_end"); i < 0 || j < i {
		t.Errorf("events: got %v, want the start and the end of a retry", kinds)
	}
}

// A name is shown to who decides, and may neither control the terminal nor look like another.
func TestTheNameOfAToolIsVisibleInItsDialog(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a", Features: core.FeatureApprovals}, w.work)
	c := dial(t, s, pi.ConnOptions{})
	c.open("t", "a")
	c.send(`{"id":"p","type":"prompt","sessionId":"t","message":"x"}`)
	a.report(<-w.tasks, core.ApprovalRequested{ID: "k", Name: "ls\x1b[2K\u202e", Input: "{\"path\":\"\u202e\"}"})
	c.until("extension_ui_request", `"title":"Allow ls\\x1b[2K\\u202e?"`, `"message":"{\"path\":\"\\u202e\"}"`)
}
