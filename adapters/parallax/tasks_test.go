package parallax_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/task"
)

func TestATaskHasTheFormOfThePage(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.registered(parallax.Options{AgentID: "a"}, `{"capabilities":["classification","analysis"]}`)
		a := s.requester()
		opened := a.open(core.Request{
			To: core.ToCapability("analysis", "classification"), Content: "Document text to classify", Data: json.RawMessage(`{"options":{"categories":["technology"]}}`),
			Attachments: []core.File{{Name: "a.txt", MediaType: "text/plain", Data: []byte("hi")}}, History: []core.Turn{{Role: core.RoleUser, Text: "before"}},
			Context: json.RawMessage(`{"k":1}`), Priority: core.PriorityUrgent, MaxTokens: 50, Domain: "d", Deadline: time.Now().Add(1500 * time.Millisecond),
		})
		got := decode[wire.Task](p, p.receive(wire.TypeTask))
		want := wire.Task{
			TaskRef:     wire.TaskRef{TaskID: string(opened.ID()), ExecutionID: string(opened.ID()) + ".1"},
			PatternName: "dragoman.ask", PatternVersion: "1.0.0", Capability: "analysis", Timeout: 1500, Priority: "high",
			Input:   []byte(`{"attachments":[{"name":"a.txt","mediaType":"text/plain","data":"aGk="}],"content":"Document text to classify","context":{"k":1},"options":{"categories":["technology"]},"history":[{"role":"user","content":"before"}]}`),
			Context: wire.TaskContext{TotalSteps: 1, Intent: "ask", Thread: string(opened.ID()), Domain: "d", MaxTokens: 50, Requester: "asker"},
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(wire.Task{})); diff != "" {
			t.Errorf("task differs (-want +got):\n%s", diff)
		}
		synctest.Wait() // the receipt follows the write
		if r := opened.Receipt(); r.Stage != core.StageDelivered || r.Agent != "a" {
			t.Errorf("receipt: got %+v, want delivered to a", r)
		}
		p.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK","executionId":"EXEC","status":"completed","result":{"category":"technology","confidence":0.92},"duration":1500,"metadata":{"tokensUsed":150,"region":"eu"}}}`, got))
		events := a.events(opened)
		if want := "opened assigned accepted usage done"; kinds(events) != want {
			t.Errorf("events: got %s, want %s", kinds(events), want)
		}
		answer := core.Fold(events)
		if string(answer.Data) != `{"category":"technology","confidence":0.92}` || answer.TokensUsed != 150 || answer.Usage.Output != 150 {
			t.Errorf("answer: got %+v, want the data and 150 tokens", answer)
		}
		if f := events[len(events)-1].Foreign; f == nil || string(f.JSON) != `{"payload":{"duration":1500,"metadata":{"region":"eu"}}}` {
			t.Errorf("foreign: got %+v, want the fields without a meaning", f)
		}
	})
}

func TestALongAnswerArrivesWhole(t *testing.T) {
	text := strings.Repeat("0123456789", 90_000)
	withHub(t, func(s *setup) {
		p := s.registered(parallax.Options{AgentID: "a"}, `{"capabilities":[]}`)
		a := s.requester()
		opened := a.ask("a", text)
		assigned := decode[wire.Task](p, p.receive(wire.TypeTask))
		if r, err := assigned.Request(time.Now()); err != nil || r.Content != text {
			t.Errorf("content: got %d bytes and %v, want %d", len(r.Content), err, len(text))
		}
		p.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK","result":`+toJSON(t, map[string]any{"content": text, "files": []any{map[string]any{"name": "f", "data": "aGk="}}})+`}}`, assigned))
		events := a.events(opened)
		if want := "opened assigned accepted text file done"; kinds(events) != want {
			t.Errorf("events: got %s, want %s", kinds(events), want)
		}
		if got := core.Fold(events); got.Text != text || len(got.Files) != 1 || string(got.Files[0].Data) != "hi" || got.Data != nil {
			t.Errorf("answer: got %d bytes of text, files %v and data %s, want it whole", len(got.Text), got.Files, got.Data)
		}
	})
}

func TestAFailureKeepsItsCodeAndMessage(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.registered(parallax.Options{AgentID: "a"}, `{"capabilities":[]}`)
		a := s.requester()
		opened := a.ask("a", "go")
		assigned := decode[wire.Task](p, p.receive(wire.TypeTask))
		p.send(withIDs(`{"type":"task_error","id":"m","payload":{"taskId":"TASK","executionId":"EXEC","error":{"code":"PROCESSING_ERROR","message":"Failed to process input","details":{"reason":"Content too long"}},"retryable":true}}`, assigned))
		events := a.events(opened)
		want := &core.Fault{Code: core.CodeInternal, Message: "Failed to process input", Retryable: true, PeerCode: "PROCESSING_ERROR"}
		if diff := cmp.Diff(want, core.Fold(events).Fault, cmpopts.IgnoreUnexported(core.Fault{})); diff != "" {
			t.Errorf("fault differs (-want +got):\n%s", diff)
		}
		if f := events[len(events)-1].Foreign; f == nil || string(f.JSON) != `{"payload":{"error":{"details":{"reason":"Content too long"}}}}` {
			t.Errorf("foreign: got %+v, want the details", f)
		}
	})
}

func TestARejectedTaskIsReassignedAsANewExecution(t *testing.T) {
	withHub(t, func(s *setup) {
		one := s.registered(parallax.Options{AgentID: "one"}, `{"capabilities":["x"]}`)
		a := s.requester()
		opened := a.open(core.Request{To: core.ToCapability("x"), Content: "go"})
		first := decode[wire.Task](one, one.receive(wire.TypeTask))
		two := s.registered(parallax.Options{AgentID: "two"}, `{"capabilities":["x"]}`)
		one.send(withIDs(`{"type":"task_error","id":"m","payload":{"taskId":"TASK","error":{"code":"REJECTED","message":"Cannot handle this task type"},"retryable":true}}`, first))
		second := decode[wire.Task](two, two.receive(wire.TypeTask))
		if second.TaskID != first.TaskID || second.ExecutionID == first.ExecutionID {
			t.Errorf("got %+v after %+v, want the same task in another execution", second.TaskRef, first.TaskRef)
		}
		// Reports of the first agent are ignored.
		one.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK","result":"late"}}`, first))
		one.expectNothing()
		two.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK","executionId":"`+first.ExecutionID+`","result":"wrong"}}`, second))
		two.expectError(wire.CodeTaskNotHeld)
		two.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK","executionId":"EXEC","result":"right"}}`, second))
		events := a.events(opened)
		if want := "opened assigned retrying assigned accepted text done"; kinds(events) != want {
			t.Errorf("events: got %s, want %s", kinds(events), want)
		}
		if got := core.Fold(events); got.Text != "right" || got.Agent != "two" {
			t.Errorf("answer: got %+v, want right, by two", got)
		}
		s.expectCount("parallax.ignored.late", 1)
	})
}

func TestAReportOnTheTaskOfAnotherAgentIsRefused(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.registered(parallax.Options{AgentID: "a"}, `{"capabilities":[]}`)
		thief := s.registered(parallax.Options{AgentID: "b"}, streaming)
		a := s.requester()
		opened := a.ask("a", "go")
		assigned := decode[wire.Task](p, p.receive(wire.TypeTask))
		for _, frame := range []string{
			`{"type":"task_result","id":"m","payload":{"taskId":"TASK","executionId":"EXEC","result":"mine"}}`,
			`{"type":"task_error","id":"m","payload":{"taskId":"TASK","error":{"code":"X"}}}`,
			`{"type":"task_progress","id":"m","payload":{"taskId":"TASK","text":"mine"}}`,
			`{"type":"task_accepted","id":"m","payload":{"taskId":"TASK"}}`,
			`{"type":"task_result","id":"m","payload":{"taskId":"nobody's"}}`,
		} {
			thief.send(withIDs(frame, assigned))
			if m, r := thief.expectError(wire.CodeTaskNotHeld); m.ID != "m" || r.Fatal {
				t.Errorf("%s: got id %q and %+v, want its id and not fatal", frame, m.ID, r)
			}
		}
		s.expectCount("parallax.error.TASK_NOT_HELD", 5)
		p.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK","result":"true"}}`, assigned))
		if got := a.answer(opened); got.Text != "true" {
			t.Errorf("answer: got %q, want true", got.Text)
		}
	})
}

func TestACancelReachesTheAgentWithItsReason(t *testing.T) {
	for name, c := range map[string]struct {
		say  string
		want core.Kind
	}{
		"which it obeys":               {`{"type":"task_error","id":"m","payload":{"taskId":"TASK","error":{"code":"CANCELLED","message":"as told"}}}`, core.KindCancelled},
		"which it obeys with a result": {`{"type":"task_result","id":"m","payload":{"taskId":"TASK","status":"cancelled","result":"as told"}}`, core.KindCancelled},
		"after it was done":            {`{"type":"task_result","id":"m","payload":{"taskId":"TASK","result":"done"}}`, core.KindDone},
	} {
		t.Run(name, func(t *testing.T) {
			withHub(t, func(s *setup) {
				p := s.registered(parallax.Options{AgentID: "a"}, `{"capabilities":[]}`)
				a := s.requester()
				opened := a.ask("a", "go")
				assigned := decode[wire.Task](p, p.receive(wire.TypeTask))
				if err := a.session.Cancel(opened.ID(), "changed my mind"); err != nil {
					t.Fatal(err)
				}
				got := decode[wire.TaskCancelled](p, p.receive(wire.TypeTaskCancelled))
				if want := (wire.TaskCancelled{TaskRef: assigned.TaskRef, Reason: "changed my mind"}); got != want {
					t.Errorf("got %+v, want %+v", got, want)
				}
				p.send(withIDs(c.say, assigned))
				if got := a.answer(opened); got.End != c.want {
					t.Errorf("end: got %v, want %v", got.End, c.want)
				}
				p.expectNothing()
			})
		})
	}
}

func TestADeadlineIsAnExecutionTimeoutAndALateAnswerFreesTheAgent(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.registered(parallax.Options{AgentID: "a"}, `{"capabilities":[]}`)
		a := s.requester()
		opened := a.open(core.Request{To: core.ToAgent("a"), Content: "go", Deadline: time.Now().Add(2 * time.Second)})
		assigned := decode[wire.Task](p, p.receive(wire.TypeTask))
		if got := decode[wire.TaskCancelled](p, p.receive(wire.TypeTaskCancelled)); got.Reason != "execution_timeout" {
			t.Errorf("reason: got %q, want execution_timeout", got.Reason)
		}
		if got := a.answer(opened); got.Fault == nil || got.Fault.Code != core.CodeTimeout {
			t.Errorf("answer: got %+v, want a timeout", got)
		}
		next := a.ask("a", "again")
		p.expectNothing() // the agent still worker on the first
		p.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK","result":"late"}}`, assigned))
		again := decode[wire.Task](p, p.receive(wire.TypeTask))
		p.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK","result":"in time"}}`, again))
		if got := a.answer(next); got.Text != "in time" {
			t.Errorf("answer: got %+v, want in time", got)
		}
	})
}

func TestTheTaskTimeoutOfAnAgentIsEnforced(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.registered(parallax.Options{AgentID: "a"}, `{"capabilities":["x"],"config":{"taskTimeout":2000}}`)
		a := s.requester()
		far := time.Now().Add(time.Hour)
		opened := a.open(core.Request{To: core.ToAgent("a"), Content: "go", Deadline: far})
		began := time.Now()
		assigned := decode[wire.Task](p, p.receive(wire.TypeTask))
		if assigned.Timeout != 2000 {
			t.Errorf("got timeout %d in the task, want 2000", assigned.Timeout)
		}
		if got := decode[wire.TaskCancelled](p, p.receive(wire.TypeTaskCancelled)); got.Reason != "execution_timeout" {
			t.Errorf("reason: got %q, want execution_timeout", got.Reason)
		}
		got := a.answer(opened)
		if took := time.Since(began); took != 2*time.Second || got.Fault == nil || got.Fault.Code != core.CodeTimeout || !strings.Contains(got.Fault.Message, "2s") {
			t.Errorf("got %+v after %s, want a timeout that names the agent's 2s", got.Fault, took)
		}
		p.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK","result":"late"}}`, assigned))

		// An earlier deadline takes precedence.
		opened = a.open(core.Request{To: core.ToAgent("a"), Content: "go", Deadline: time.Now().Add(time.Second)})
		assigned = decode[wire.Task](p, p.receive(wire.TypeTask))
		if assigned.Timeout != 1000 {
			t.Errorf("got timeout %d in the task, want 1000", assigned.Timeout)
		}
		p.receive(wire.TypeTaskCancelled)
		a.answer(opened)
		p.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK","result":"late"}}`, assigned))

		// The next agent has a timeout of its own, from its assignment.
		opened = a.open(core.Request{To: core.ToCapability("x"), Content: "go", Deadline: far})
		assigned = decode[wire.Task](p, p.receive(wire.TypeTask))
		patient := s.registered(parallax.Options{AgentID: "patient"}, `{"capabilities":["x"]}`)
		p.send(withIDs(`{"type":"task_error","id":"m","payload":{"taskId":"TASK","error":{"code":"REJECTED","message":"no"}}}`, assigned))
		assigned = decode[wire.Task](patient, patient.receive(wire.TypeTask))
		time.Sleep(time.Minute)
		if want := wire.Count(time.Until(far).Milliseconds() + 60_000); assigned.Timeout != want {
			t.Errorf("got timeout %d in the task, want %d until the deadline", assigned.Timeout, want)
		}
		patient.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK","result":"done"}}`, assigned))
		if got := a.answer(opened); got.Text != "done" {
			t.Errorf("got %+v, want it done", got)
		}
	})
}

func TestAnAgentThatDoesNotEndItsOnlyTaskIsClosed(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.registered(parallax.Options{AgentID: "a"}, `{"capabilities":[]}`)
		a := s.requester()
		opened := a.open(core.Request{To: core.ToAgent("a"), Content: "go", Deadline: time.Now().Add(2 * time.Second)})
		p.receive(wire.TypeTask)
		p.receive(wire.TypeTaskCancelled)
		a.answer(opened)
		if _, r := p.expectError("TIMEOUT"); !r.Fatal {
			t.Errorf("got %+v, want it fatal", r)
		}
		if r := p.waitClosed(); r.Code != 4410 {
			t.Errorf("closed: got %+v, want code %d", r, 4410)
		}
	})
}

func TestALostConnectionFailsTheTasksOfTheAgent(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.registered(parallax.Options{AgentID: "a"}, streaming)
		a := s.requester()
		opened := a.ask("a", "go")
		assigned := decode[wire.Task](p, p.receive(wire.TypeTask))
		p.send(withIDs(`{"type":"task_progress","id":"m","payload":{"taskId":"TASK","text":"half"}}`, assigned))
		synctest.Wait()
		_ = p.conn.Close(link.Reason{Cause: link.PeerGone})
		got := a.answer(opened)
		if got.End != core.KindFailed || got.Fault.Code != core.CodeUnreachable || !got.Fault.Retryable || got.Text != "half" {
			t.Errorf("answer: got %+v, want half, then unreachable", got)
		}
		synctest.Wait() // its tasks end before its id is free
		if _, here := s.hub.Agent(core.Principal{Operator: true}, "a"); here {
			t.Error("got the agent, want none")
		}
	})
}

func TestEarlierTurnsThatDoNotFitAreOmitted(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.registered(parallax.Options{AgentID: "a", MaxMessageBytes: 4000}, `{"capabilities":[]}`)
		a := s.requester()
		var history []core.Turn
		for i := range 8 {
			history = append(history, core.Turn{Role: core.RoleUser, Text: fmt.Sprintf("%d %s", i, strings.Repeat("x", 900))})
		}
		opened := a.open(core.Request{To: core.ToAgent("a"), Content: "go", History: history})
		assigned := decode[wire.Task](p, p.receive(wire.TypeTask))
		r, err := assigned.Request(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if len(r.History) != 2 || !strings.HasPrefix(r.History[1].Text, "7 ") || assigned.Context.HistoryOmitted != 6 {
			t.Errorf("got %d turns and %d omitted, want the last 2 and 6", len(r.History), assigned.Context.HistoryOmitted)
		}
		p.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK"}}`, assigned))
		a.answer(opened)
	})
}

func TestFilesOfEarlierTurnsThatDoNotFitAreNamedAndTheTaskGoesOn(t *testing.T) {
	withHub(t, func(s *setup) {
		first := s.registered(parallax.Options{AgentID: "a"}, `{"capabilities":[]}`)
		a := s.requester()
		opened := a.open(core.Request{To: core.ToAgent("a"), Thread: "t", Content: "look", Attachments: []core.File{{Name: "plan.png", MediaType: "image/png", Data: make([]byte, 3000)}}})
		first.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK","result":"seen"}}`, decode[wire.Task](first, first.receive(wire.TypeTask))))
		a.answer(opened)
		second := s.registered(parallax.Options{AgentID: "b", MaxMessageBytes: 4000}, `{"capabilities":[]}`)
		opened = a.open(core.Request{To: core.ToAgent("b"), Thread: "t", Content: "go on"})
		assigned := decode[wire.Task](second, second.receive(wire.TypeTask))
		r, err := assigned.Request(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Attachments) != 0 || !strings.HasPrefix(r.Content, "go on") || !strings.Contains(r.Content, `file "plan.png"`) || len(r.History) != 2 {
			t.Errorf("got %d files, %d turns and %q, want both turns and the name of the file", len(r.Attachments), len(r.History), r.Content)
		}
		second.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK"}}`, assigned))
		a.answer(opened)
	})
}

func TestATooLargeRequestFailsWithoutDisturbingTheAgent(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.registered(parallax.Options{AgentID: "a"}, `{"capabilities":[]}`)
		a := s.requester()
		if got := a.answer(a.ask("a", strings.Repeat("x", 1_000_000))); got.Fault == nil || got.Fault.Code != core.CodeTooLarge {
			t.Errorf("answer: got %+v, want too_large", got.Fault)
		}
		opened := a.ask("a", "small")
		assigned := decode[wire.Task](p, p.receive(wire.TypeTask))
		p.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK","result":"fine"}}`, assigned))
		if got := a.answer(opened); got.Text != "fine" {
			t.Errorf("answer: got %+v, want fine", got)
		}
	})
}

func TestNoticesReachOnlyAgentsWithTheCapability(t *testing.T) {
	withHub(t, func(s *setup) {
		a := s.requester()
		notice := func(to core.AgentID) (*task.Task, error) {
			return a.session.Open(core.Request{Intent: core.IntentNotify, To: core.ToAgent(to), Notice: &core.Notice{Topic: "user.left", Data: json.RawMessage(`{"hours":2}`)}}, hub.OpenOptions{})
		}
		s.registered(parallax.Options{AgentID: "without"}, `{"capabilities":[]}`)
		if _, err := notice("without"); core.AsFault(err).Code != core.CodeUnsupported {
			t.Errorf("to an agent without notify: got %v, want unsupported", err)
		}
		p := s.registered(parallax.Options{AgentID: "with"}, `{"capabilities":["x","notify"]}`)
		delivered, err := notice("with")
		if err != nil {
			t.Fatal(err)
		}
		assigned := decode[wire.Task](p, p.receive(wire.TypeTask))
		if assigned.Capability != "notify" || assigned.PatternName != "dragoman.notify" || string(assigned.Input) != `{"content":"","notice":{"topic":"user.left","data":{"hours":2}}}` {
			t.Errorf("got %+v with %s, want a notice", assigned, assigned.Input)
		}
		if got := a.answer(delivered); got.End != core.KindDone {
			t.Errorf("notice: got %+v, want it done once it was delivered", got)
		}
		p.expectNothing()
		p.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK"}}`, assigned))
		p.expectNothing()
	})
}

func TestAnAgentAddsAndRemovesTheCapabilityForNotices(t *testing.T) {
	const with, without = `{"capabilities":["x","notify"]}`, `{"capabilities":["x"]}`
	for _, kind := range []string{wire.TypeStatusUpdate, wire.TypeRegister} {
		t.Run(kind, func(t *testing.T) {
			withHub(t, func(s *setup) {
				a := s.requester()
				notice := func() (*task.Task, error) {
					return a.session.Open(core.Request{Intent: core.IntentNotify, To: core.ToAgent("a"), Notice: &core.Notice{Topic: "tea"}}, hub.OpenOptions{})
				}
				p := s.registered(parallax.Options{AgentID: "a"}, without)
				change := func(payload string) {
					p.send(`{"type":"` + kind + `","id":"u","payload":` + payload + `}`)
					if kind == wire.TypeRegister {
						p.receive(wire.TypeRegistered)
					}
					synctest.Wait()
				}
				change(with)
				if _, err := notice(); err != nil {
					t.Fatalf("with the capability: got %v, want no error", err)
				}
				assigned := decode[wire.Task](p, p.receive(wire.TypeTask))
				waits, err := notice() // it waits until the agent has room
				if err != nil {
					t.Fatal(err)
				}
				change(without)
				p.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK"}}`, assigned))
				if f := a.answer(waits).Fault; f == nil || f.Code != core.CodeUnsupported {
					t.Errorf("a waiting notice: got %v, want unsupported", f)
				}
				if _, err := notice(); core.AsFault(err).Code != core.CodeUnsupported {
					t.Errorf("without the capability: got %v, want unsupported", err)
				}
				p.expectNothing()
			})
		})
	}
}

func TestContextCannotBeInjected(t *testing.T) {
	withHub(t, func(s *setup) {
		p := s.registered(parallax.Options{AgentID: "a"}, streaming)
		a := s.requester()
		opened := a.ask("a", "go")
		assigned := decode[wire.Task](p, p.receive(wire.TypeTask))
		if err := a.session.Inject(hub.NoWait, opened.ID(), core.Injected{Content: "look"}); core.AsFault(err).Code != core.CodeUnsupported {
			t.Errorf("inject: got %v, want unsupported", err)
		}
		p.expectNothing()
		p.send(withIDs(`{"type":"task_result","id":"m","payload":{"taskId":"TASK"}}`, assigned))
		a.answer(opened)
	})
}
