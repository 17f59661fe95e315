package a2a_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/a2a"
	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// partsMessage returns the params of a message with parts for a task.
func partsMessage(id string, task string, parts string) string {
	return fmt.Sprintf(`{"message":{"messageId":%q,"role":"ROLE_USER","taskId":%q,"parts":[%s]}}`, id, task, parts)
}

func TestAnApprovalInterruptsTheTaskUntilItIsDecided(t *testing.T) {
	for _, b := range bindings {
		t.Run(string(b), func(t *testing.T) {
			f := start(t, a2a.Options{})
			a := f.agent("shout")
			asked := make(chan wire.Task)
			go func() { asked <- f.send(b, "shout", message("m1", "do it", "")) }()
			task, _ := a.next(core.KindAssigned)
			const name = "rm\x1b[2K"
			a.say(task, core.ApprovalRequested{ID: "c1", Name: name, Input: `{"path":"/"}`})
			waits := <-asked
			if waits.Status.State != wire.StateInputRequired {
				t.Fatalf("got %s, want it to wait for the approval", waits.Status.State)
			}
			var data struct {
				Approval struct{ ID, Name, Input string }
			}
			if err := json.Unmarshal(waits.Status.Message.Parts[1].Data, &data); err != nil || data.Approval.ID != "c1" || data.Approval.Name != name {
				t.Errorf("got %s and %v, want the approval as data", waits.Status.Message.Parts[1].Data, err)
			}
			if text := waits.Status.Message.Parts[0].Text; !strings.HasPrefix(text, `May rm\x1b[2K be called with {"path":"/"}?`) {
				t.Errorf("got %q, want the name of the tool visible", text)
			}
			if got := f.get(b, "shout", waits.ID).Status.State; got != wire.StateInputRequired {
				t.Errorf("got %s from GetTask, want the same", got)
			}
			if _, _, failed := f.call(b, "shout", wire.MethodSend, partsMessage("m2", waits.ID, `{"text":"yes"}`)); failed == nil || !strings.Contains(failed.Message, `{"approval":{"id":"c1","approved":true}}`) {
				t.Errorf("got %v, want to be told what decides", failed)
			}
			if _, _, failed := f.call(b, "shout", wire.MethodSend, partsMessage("m2b", waits.ID, `{"data":{"approval":{"id":"c1"}}}`)); failed == nil {
				t.Error("got an approval without approved accepted, want an error")
			}
			go func() {
				asked <- f.send(b, "shout", partsMessage("m3", waits.ID, `{"data":{"approval":{"id":"c1","approved":true,"reason":"fine"}}}`))
			}()
			_, e := a.next(core.KindApprovalDecided)
			if d := e.Body.(core.ApprovalDecided); !d.Approved || d.By != "local" || d.Reason != "fine" {
				t.Errorf("got %+v, want it approved by local", d)
			}
			a.say(task, core.Done{Text: "done"})
			if done := <-asked; done.Status.State != wire.StateCompleted || answerOf(done) != "done" || done.ID != waits.ID {
				t.Errorf("got %+v, want the same task completed", done)
			}
		})
	}
}

// ask makes an agent ask people a question with the hub's tool, and returns its result.
func (a *agent) ask(input string) <-chan string {
	out := make(chan string, 1)
	go func() {
		r, err := a.s.Call(context.Background(), "ask_user", json.RawMessage(input))
		if err != nil || r.Fault != nil {
			out <- fmt.Sprint(err, r)
			return
		}
		out <- string(r.Output)
	}()
	return out
}

func TestAQuestionIsAnsweredByTextByLabelOrByData(t *testing.T) {
	for name, c := range map[string]struct{ parts, want string }{
		"text":  {`{"text":"green"}`, `"custom_text":"green"`},
		"label": {`{"text":"red"}`, `"selected":["red"]`},
		"data":  {`{"data":{"answer":{"selected":["blue"],"text":"dark"}}}`, `"selected":["blue"],"custom_text":"dark"`},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, a2a.Options{})
			a := f.agent("shout", func(c *core.Card) { c.Capabilities = []string{"ui"} })
			asked := make(chan wire.Task)
			go func() { asked <- f.send(rpc, "shout", message("m1", "paint", "")) }()
			task, _ := a.next(core.KindAssigned)
			answer := a.ask(`{"question":"Which colour?","options":[{"label":"red"},{"label":"blue"}]}`)
			waits := <-asked
			if waits.Status.State != wire.StateInputRequired || waits.Status.Message == nil || wire.Text(waits.Status.Message.Parts) != "Which colour?" {
				t.Fatalf("got %+v, want the question", waits.Status)
			}
			s := f.stream(rest, "shout", wire.MethodSubscribe, fmt.Sprintf(`{"id":%q}`, waits.ID))
			if first, _ := s.next(); first.Task == nil || first.Task.Status.State != wire.StateInputRequired {
				t.Errorf("got %+v, want the task that waits", first)
			}
			params := strings.TrimSuffix(partsMessage("m2", waits.ID, c.parts), "}") + `,"configuration":{"returnImmediately":true}}`
			f.send(rpc, "shout", params)
			if got := <-answer; !strings.Contains(got, c.want) {
				t.Errorf("got the answer %s, want %s", got, c.want)
			}
			if got := f.get(rpc, "shout", waits.ID).Status.State; got != wire.StateWorking {
				t.Errorf("got %s once it is answered, want it working", got)
			}
			if _, _, failed := f.call(rpc, "shout", wire.MethodSend, partsMessage("m3", waits.ID, `{"data":{"answer":{"text":"late"}}}`)); failed == nil || !strings.Contains(failed.Message, "no question") {
				t.Errorf("got %v, want a second answer refused", failed)
			}
			a.say(task, core.Done{})
			if items := s.rest(); lastState(items) != wire.StateCompleted {
				t.Errorf("got %s, want the subscriber told of the end", lastState(items))
			}
		})
	}
}

func TestTextForARunningTaskIsContextForItsAgent(t *testing.T) {
	f := start(t, a2a.Options{})
	a := f.agent("shout")
	deaf := f.agent("deaf", func(c *core.Card) { c.Features = 0 })
	begin := func(agent string) string {
		return f.send(rpc, agent, strings.TrimSuffix(message("m-"+agent, "go", ""), "}")+`,"configuration":{"returnImmediately":true}}`).ID
	}
	id := begin("shout")
	task, _ := a.next(core.KindAssigned)
	params := strings.TrimSuffix(partsMessage("m2", id, `{"text":"faster"},{"data":{"by":2}}`), "}") + `,"configuration":{"returnImmediately":true}}`
	got := f.send(rpc, "shout", params)
	if _, e := a.next(core.KindInjected); e.Body.(core.Injected).Content != "faster\n{\"by\":2}" {
		t.Errorf("got %+v, want the text and the data", e.Body)
	}
	if len(got.History) != 2 || got.History[1].ID != "m2" {
		t.Errorf("got the history %+v, want both messages", got.History)
	}
	if _, _, failed := f.call(rpc, "shout", wire.MethodSend, partsMessage("m3", id, `{"raw":"aGk="}`)); failed.reason() != wire.ReasonUnsupportedOperation {
		t.Errorf("got %v, want a file refused", failed)
	}
	a.say(task, core.Done{})
	other := begin("deaf")
	task, _ = deaf.next(core.KindAssigned)
	if _, _, failed := f.call(rpc, "deaf", wire.MethodSend, partsMessage("m4", other, `{"text":"faster"}`)); failed.reason() != wire.ReasonUnsupportedOperation {
		t.Errorf("got %v, want it refused by an agent that takes no context", failed)
	}
	deaf.say(task, core.Done{})
}

func TestAMessageThatComesAgainDoesNothingTwice(t *testing.T) {
	f := start(t, a2a.Options{})
	f.agent("shout").shouts()
	first := f.send(rpc, "shout", message("m1", "hi", ""))
	if again := f.send(rpc, "shout", message("m1", "hi", "")); again.ID != first.ID {
		t.Errorf("got task %s, want %s again", again.ID, first.ID)
	}
	s := f.stream(rest, "shout", wire.MethodStream, message("m1", "hi", ""))
	if items := s.rest(); items[0].Task == nil || items[0].Task.ID != first.ID || textOf(items) != "HI" || lastState(items) != wire.StateCompleted {
		t.Errorf("got %+v, want the stream of the first task again", items)
	}
	if other := f.send(rpc, "shout", message("m1", "ho", "")); other.ID == first.ID || answerOf(other) != "HO" {
		t.Errorf("got %+v, want other content to be another message", other)
	}
	if other := f.send(rpc, "shout", message("m1", "ho", ""), "X-User: kit"); other.ID == first.ID {
		t.Error("got the task of somebody else, want one of its own")
	}
	if got := f.hub.Counters()["a2a.duplicate"]; got != 2 {
		t.Errorf("got %d duplicates counted, want 2", got)
	}
}

func TestAnEndedTaskTakesNoMessage(t *testing.T) {
	for _, b := range bindings {
		t.Run(string(b), func(t *testing.T) {
			f := start(t, a2a.Options{})
			f.agent("shout").shouts()
			done := f.send(b, "shout", message("m1", "hi", `,"contextId":"c"`))
			for method, params := range map[string]string{
				wire.MethodSend:      partsMessage("m2", done.ID, `{"text":"more"}`),
				wire.MethodSubscribe: fmt.Sprintf(`{"id":%q}`, done.ID),
			} {
				if _, _, failed := f.call(b, "shout", method, params); failed.reason() != wire.ReasonUnsupportedOperation {
					t.Errorf("%s: got %v, want UNSUPPORTED_OPERATION", method, failed)
				}
			}
			if _, _, failed := f.call(b, "shout", wire.MethodCancelTask, fmt.Sprintf(`{"id":%q}`, done.ID)); failed.reason() != wire.ReasonTaskNotCancelable {
				t.Errorf("cancel: got %v, want TASK_NOT_CANCELABLE", failed)
			}
			next := f.send(b, "shout", message("m3", "more", `,"contextId":"c"`))
			if next.ID == done.ID || next.ContextID != "c" {
				t.Errorf("got %+v, want another task in the context", next)
			}
		})
	}
}

func TestAWrongContextIsRefused(t *testing.T) {
	f := start(t, a2a.Options{})
	a := f.agent("shout")
	id := f.send(rpc, "shout", strings.TrimSuffix(message("m1", "go", ""), "}")+`,"configuration":{"returnImmediately":true}}`).ID
	_, _, failed := f.call(rpc, "shout", wire.MethodSend, fmt.Sprintf(`{"message":{"messageId":"m2","role":"ROLE_USER","taskId":%q,"contextId":"other","parts":[{"text":"x"}]}}`, id))
	if failed == nil || failed.Code != -32602 || !strings.Contains(failed.Message, "message.contextId") {
		t.Errorf("got %+v, want invalid params that name the context", failed)
	}
	task, _ := a.next(core.KindAssigned)
	a.say(task, core.Done{})
}

func TestTasksOfOthersLookLikeNone(t *testing.T) {
	for _, b := range bindings {
		t.Run(string(b), func(t *testing.T) {
			f := start(t, a2a.Options{})
			f.agent("shout").shouts()
			f.agent("other").shouts()
			done := f.send(b, "shout", message("m1", "hi", ""), "X-User: kit")
			for name, call := range map[string]func() *failure{
				"somebody else": func() *failure {
					_, _, failed := f.call(b, "shout", wire.MethodGetTask, fmt.Sprintf(`{"id":%q}`, done.ID), "X-User: eve")
					return failed
				},
				"another agent": func() *failure {
					_, _, failed := f.call(b, "other", wire.MethodGetTask, fmt.Sprintf(`{"id":%q}`, done.ID), "X-User: kit")
					return failed
				},
				"a message": func() *failure {
					_, _, failed := f.call(b, "shout", wire.MethodSend, partsMessage("m2", done.ID, `{"text":"x"}`), "X-User: eve")
					return failed
				},
				"no task": func() *failure {
					_, _, failed := f.call(b, "shout", wire.MethodGetTask, `{"id":"nothing"}`, "X-User: kit")
					return failed
				},
			} {
				if got := call(); got.reason() != wire.ReasonTaskNotFound {
					t.Errorf("%s: got %v, want TASK_NOT_FOUND", name, got)
				}
			}
			if got := f.get(b, "shout", done.ID, "X-User: kit"); answerOf(got) != "HI" {
				t.Errorf("got %+v, want it for its owner", got)
			}
			if status, _, got := f.call(b, "shout", wire.MethodGetTask, `{"id":"x"}`, "X-User: nobody"); status != 401 || got.reason() != "UNAUTHENTICATED" {
				t.Errorf("without a principal: got %d %v, want 401", status, got)
			}
		})
	}
}

func TestCancelEndsTheTask(t *testing.T) {
	for _, b := range bindings {
		t.Run(string(b), func(t *testing.T) {
			f := start(t, a2a.Options{})
			a := f.agent("shout")
			s := f.stream(b, "shout", wire.MethodStream, message("m1", "go", ""))
			first, _ := s.next()
			task, _ := a.next(core.KindAssigned)
			answered := make(chan wire.Task)
			go func() {
				_, result, failed := f.call(b, "shout", wire.MethodCancelTask, fmt.Sprintf(`{"id":%q,"metadata":{"reason":"enough"}}`, first.Task.ID))
				if failed != nil {
					t.Errorf("got %v, want the task", failed)
				}
				answered <- readTask(t, result)
			}()
			a.next(core.KindCancelRequested) // before the first chunk
			a.say(task, core.Cancelled{Reason: "as requested"})
			if got := <-answered; got.Status.State != wire.StateCanceled {
				t.Errorf("got %s, want it canceled", got.Status.State)
			}
			if items := s.rest(); lastState(items) != wire.StateCanceled {
				t.Errorf("got %s in the stream, want it canceled", lastState(items))
			}
		})
	}
}

func TestFailuresSayWhy(t *testing.T) {
	for code, want := range map[core.Code]wire.State{core.CodeInternal: wire.StateFailed, core.CodeTimeout: wire.StateFailed, core.CodeUnsupported: wire.StateRejected, core.CodeNotAuthorized: wire.StateRejected} {
		f := start(t, a2a.Options{})
		a := f.agent("shout")
		a.does(func(t *task.Task) { a.say(t, core.Failed{Fault: core.NewFault(code, "no idea")}) })
		got := f.send(rpc, "shout", message("m1", "hi", ""))
		var metadata struct{ Fault core.Fault }
		if err := json.Unmarshal(got.Metadata, &metadata); err != nil || metadata.Fault.Code != code {
			t.Errorf("%s: got the metadata %s and %v, want the fault", code, got.Metadata, err)
		}
		if got.Status.State != want || wire.Text(got.Status.Message.Parts) != "no idea" {
			t.Errorf("%s: got %+v, want %s with the reason", code, got.Status, want)
		}
	}
}

func TestAnAgentThatIsGoneFailsTheTask(t *testing.T) {
	f := start(t, a2a.Options{})
	a := f.agent("shout")
	s := f.stream(rpc, "shout", wire.MethodStream, message("m1", "go", ""))
	task, _ := a.next(core.KindAssigned)
	a.say(task, core.Text{Text: "HAL"})
	a.s.Close(core.NewFault(core.CodeUnreachable, "the peer closed the connection"))
	items := s.rest()
	if lastState(items) != wire.StateFailed || textOf(items) != "HAL" {
		t.Errorf("got %s with %q, want it failed after the first chunk", lastState(items), textOf(items))
	}
	if _, _, failed := f.call(rpc, "shout", wire.MethodSend, message("m2", "go", "")); failed == nil || failed.Code != -32000 {
		t.Errorf("got %+v, want to be told that the agent is not here", failed)
	}
}

func TestAListHasTheTasksOfThePrincipalByWhateverDialect(t *testing.T) {
	for _, b := range bindings {
		t.Run(string(b), func(t *testing.T) {
			f := start(t, a2a.Options{})
			f.agent("shout").shouts()
			hold := f.agent("hold")
			const kit = "X-User: kit"
			var ids []string
			for i := range 5 {
				ids = append(ids, f.send(b, "shout", message(fmt.Sprint("m", i), "hi", `,"contextId":"c"`), kit).ID)
			}
			f.send(b, "shout", message("m", "hi", ""), "X-User: eve")
			other := f.hub.Connect(hub.Identity{Principal: core.Principal{ID: "kit", Authenticated: true}, Dialect: "test", Keep: true})
			defer other.Close(nil)
			opened, err := other.Open(core.Request{Intent: core.IntentAsk, To: core.ToAgent("hold"), Content: "wait"}, hub.OpenOptions{Keep: true})
			if err != nil {
				t.Fatal(err)
			}
			hold.next(core.KindAssigned)
			list := func(agent, params string) wire.ListTasksResponse {
				_, result, failed := f.call(b, agent, wire.MethodListTasks, params, kit)
				var out wire.ListTasksResponse
				if err := json.Unmarshal(result, &out); failed != nil || err != nil {
					t.Fatalf("%s: got %v and %v, want a list", params, failed, err)
				}
				return out
			}
			all := list("", `{}`)
			if len(all.Tasks) != 6 || all.TotalSize != 6 || all.NextPageToken != "" || all.PageSize != 50 || all.Tasks[0].ID != string(opened.ID()) {
				t.Errorf("got %d tasks of %d, page size %d, next %q; want all 6, the last first", len(all.Tasks), all.TotalSize, all.PageSize, all.NextPageToken)
			}
			if all.Tasks[1].Artifacts != nil || len(all.Tasks[1].History) != 1 {
				t.Errorf("got %+v, want no artifacts", all.Tasks[1])
			}
			var paged []string
			for token := ""; ; {
				page := list("shout", fmt.Sprintf(`{"pageSize":2,"historyLength":0,"includeArtifacts":true,"pageToken":%q}`, token))
				for _, one := range page.Tasks {
					paged = append(paged, one.ID)
					if answerOf(one) != "HI" || one.History != nil {
						t.Errorf("got %+v, want the artifacts and no history", one)
					}
				}
				if token = page.NextPageToken; token == "" {
					break
				}
			}
			for i, id := range ids {
				if j := len(ids) - 1 - i; j >= len(paged) || paged[j] != id {
					t.Errorf("got the pages %v, want %v, the last first", paged, ids)
					break
				}
			}
			if got := list("", `{"status":"TASK_STATE_WORKING"}`); len(got.Tasks) != 1 || got.TotalSize != 1 {
				t.Errorf("got %d working, want 1", len(got.Tasks))
			}
			if got := list("", `{"contextId":"c","status":"TASK_STATE_COMPLETED"}`); len(got.Tasks) != 5 {
				t.Errorf("got %d in the context, want 5", len(got.Tasks))
			}
			after := all.Tasks[1].Status.At.Format(wire.TimeFormat)
			if got := list("", fmt.Sprintf(`{"statusTimestampAfter":%q}`, after)); len(got.Tasks) == 0 || len(got.Tasks) > 6 {
				t.Errorf("got %d after %s, want at least one", len(got.Tasks), after)
			}
			for _, wrong := range []string{`{"pageSize":0}`, `{"pageSize":"many"}`, `{"status":"WORKING"}`, `{"statusTimestampAfter":"now"}`, `{"pageToken":"2"}`, `{"historyLength":-1}`} {
				if _, _, failed := f.call(b, "", wire.MethodListTasks, wrong, kit); failed.reason() != "INVALID_PARAMS" {
					t.Errorf("%s: got %v, want INVALID_PARAMS", wrong, failed)
				}
			}
			if err := hold.s.Report(opened.ID(), core.Done{}, nil); err != nil {
				t.Error(err)
			}
		})
	}
}
